# goldspan's server in a container: docs/deploy.md says how to run it. The base is named by its exact
# version; who needs the same bytes for ever adds the digest that their registry tells.
FROM python:3.13.9-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY examples examples
COPY src src
RUN python -m venv /opt/goldspan \
    && /opt/goldspan/bin/pip install --no-cache-dir --disable-pip-version-check \
        --only-binary=:all: --constraint constraints.txt ".[postgres,server]"

FROM python:3.13.9-slim-bookworm
RUN groupadd --gid 10001 goldspan \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin goldspan \
    && install -d -m 0700 -o goldspan -g goldspan /data /var/cache/goldspan
COPY --from=build /opt/goldspan /opt/goldspan
# The kernels are compiled for the processor that runs them, and kept where the user may write.
ENV PATH=/opt/goldspan/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/var/cache/goldspan/kernels \
    MPLCONFIGDIR=/var/cache/goldspan/matplotlib
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/var/cache/goldspan"]
EXPOSE 8080
# No curl in the image: Python asks. The first start compiles kernels.
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "from http.client import HTTPConnection; c = HTTPConnection('127.0.0.1', 8080, timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["goldspan"]
CMD ["serve", "plan.toml", "--host", "0.0.0.0"]
