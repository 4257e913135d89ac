"""The image and the compose file: linted always, built and started where an engine answers."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from cli.test_cli import goldspan_run
from goldspan.store.engine import VARIABLE
from goldspan.web.security.middleware import HEALTH

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 1_800
"""Seconds in which an image is built, or a server starts."""
PORT = 8080
PINNED = re.compile(r"^[a-z0-9./-]+:\d+\.\d+(\.\d+)?-[a-z-]+$")
"""A base by its exact version, never `latest`."""


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile: word and arguments."""
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    found = [line.split(None, 1) for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(word, " ".join(rest.split())) for word, rest in found]


def of(word: str) -> list[str]:
    """Return the arguments of all instructions of a kind in the last stage."""
    every = instructions()
    last = max(n for n, (one, _) in enumerate(every) if one == "FROM")
    return [rest for one, rest in every[last:] if one == word]


def compose() -> dict:
    return yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))


def options_of_serve() -> set[str]:
    run = goldspan_run("serve", "--help-all")
    assert run.returncode == 0
    return set(re.findall(r"--[a-z-]+", run.stdout))


def kept() -> list[str]:
    """Return what .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    return [line[1:] for line in rules if line.startswith("!")]


# The Dockerfile


def test_the_bases_are_pinned_and_there_is_more_than_one_stage():
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert len(bases) == 2
    assert len(set(bases)) == 1  # a virtual environment is of one Python
    for base in bases:
        assert PINNED.match(base), base


def test_all_that_is_copied_is_there_and_not_ignored():
    allowed = kept()
    for word, rest in instructions():
        if word != "COPY" or rest.startswith("--from="):
            continue
        *sources, _ = rest.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, one) for one in allowed), source
    assert {name for name in allowed if not (ROOT / name).exists()} == set()


def test_what_the_wheel_is_made_of_is_copied():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    made_of = [*wheel["packages"], *wheel["force-include"], "README.md"]
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from=")
        for source in rest.split()[:-1]
    }
    for one in [*made_of, *project["project"]["license-files"], "pyproject.toml"]:
        assert copied & {one, *map(str, Path(one).parents)}, one


def test_the_last_stage_has_no_compiler_and_no_root():
    commands = " ".join(of("RUN"))
    for word in ("apt", "gcc", "build-essential", "pip "):
        assert word not in commands
    (user,) = of("USER")
    number = user.partition(":")[0]
    assert number.isdigit()
    assert int(number) > 0
    last = [word for word, _ in instructions()]
    assert last.index("USER") < last.index("ENTRYPOINT")


def test_the_user_may_write_where_kernels_and_data_are_kept():
    (volumes,) = map(json.loads, of("VOLUME"))
    (made,) = [one for one in of("RUN") if "install -d" in one]
    settings = dict(pair.split("=", 1) for pair in shlex.split(" ".join(of("ENV"))))
    assert of("WORKDIR") == ["/data"]
    for volume in volumes:
        assert volume in made.split()
    for name in ("NUMBA_CACHE_DIR", "MPLCONFIGDIR"):
        assert any(settings[name].startswith(volume) for volume in volumes), name


def test_the_command_is_one_that_serve_knows():
    (entry,), (command,) = (list(map(json.loads, of(word))) for word in ("ENTRYPOINT", "CMD"))
    assert entry == ["goldspan"]
    assert command[0] == "serve"
    assert {one.partition("=")[0] for one in command if one.startswith("--")} <= options_of_serve()
    assert of("EXPOSE") == [str(PORT)]


class _Answers(BaseHTTPRequestHandler):
    """Answers the path of health with a status, and everything else with 404."""

    status = 200

    def do_GET(self):
        self.send_response(self.status if self.path == HEALTH else 404)
        self.end_headers()

    def log_message(self, *_):
        """Write nothing."""


@pytest.mark.parametrize("status", [200, 503, None])
def test_the_health_check_is_healthy_where_the_server_is(status):
    (check,) = of("HEALTHCHECK")
    words = json.loads(check.partition("CMD ")[2])
    assert words[0] == "python"
    _Answers.status = status
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        port = server.server_port
        if status is not None:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        else:
            server.server_close()
        code = words[2].replace(str(PORT), str(port))
        assert code != words[2]
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
        if status is not None:
            server.shutdown()
    assert (run.returncode == 0) == (status == 200)


# The compose file


def test_the_services_start_again_and_tell_whether_they_are_healthy():
    services = compose()["services"]
    assert set(services) == {"goldspan", "database"}
    for name, one in services.items():
        assert one["restart"] == "unless-stopped", name
    assert services["database"]["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert services["goldspan"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert PINNED.match(services["database"]["image"])


def test_the_command_of_the_service_is_one_that_serve_knows():
    service = compose()["services"]["goldspan"]
    given = dict(one.split("=", 1) for one in service["command"] if one.startswith("--"))
    assert given.keys() <= options_of_serve()
    assert given["--port"] == str(PORT)
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    network = compose()["networks"]["default"]["ipam"]["config"][0]
    assert given["--trusted-proxies"] == network["gateway"]


def test_the_service_gets_its_password_by_a_variable_that_goldspan_reads():
    made = compose()
    service, database = made["services"]["goldspan"], made["services"]["database"]
    assert list(service["environment"]) == [f"{VARIABLE}_FILE"]
    (secret,) = made["secrets"]
    for one, variable in ((service, f"{VARIABLE}_FILE"), (database, "POSTGRES_PASSWORD_FILE")):
        assert one["secrets"] == [secret]
        assert one["environment"][variable] == f"/run/secrets/{secret}"
    address = next(one for one in service["command"] if one.startswith("--store="))
    user, host = re.fullmatch(r"--store=postgresql://(\w+)@(\w+)/goldspan", address).groups()
    assert (user, host) == (database["environment"]["POSTGRES_USER"], "database")


def test_no_file_names_a_version_that_is_not_this_one():
    from goldspan import __version__

    assert compose()["services"]["goldspan"]["image"] == f"goldspan:{__version__}"


def test_the_service_writes_where_the_image_lets_it():
    made = compose()
    mounted = [one.split(":")[1] for one in made["services"]["goldspan"]["volumes"]]
    (volumes,) = map(json.loads, of("VOLUME"))
    assert sorted(mounted) == sorted(volumes)
    assert made["services"]["goldspan"]["read_only"] is True


# With an engine


def engine() -> str | None:
    """Return the command of a container engine that answers."""
    for name in ("docker", "podman"):
        if shutil.which(name):
            run = subprocess.run([name, "info"], capture_output=True, timeout=60)
            if run.returncode == 0:
                return name
    return None


@pytest.mark.slow
@pytest.mark.wheel
def test_the_image_is_built_and_its_server_becomes_healthy():
    docker = engine()
    if docker is None:
        pytest.skip("no container engine answers on this machine")

    def run(*words: str) -> str:
        done = subprocess.run(
            [docker, *words], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    tag = f"goldspan-test-{os.getpid()}"
    run("build", "--tag", tag, ".")
    assert run("run", "--rm", tag, "--version")
    assert run("run", "--rm", "--entrypoint", "id", tag, "-u") == "10001"
    run("volume", "create", tag)
    data = ("--volume", f"{tag}:/data")
    run("run", "--rm", *data, tag, "init", "--example", "demo")
    web = ("--host", "0.0.0.0", "--public-url", "http://localhost:8080", "--insecure")
    begun = ("--detach", "--publish", "127.0.0.1::8080", *data, tag, "serve", "demo/serve.toml")
    name = run("run", *begun, *web)
    try:
        end = time.monotonic() + PATIENCE
        state = ""
        while state != "healthy":
            state = run("inspect", "--format", "{{.State.Health.Status}}", name)
            assert time.monotonic() < end, run("logs", name)
            time.sleep(1)
        host, _, port = run("port", name, "8080/tcp").splitlines()[0].rpartition(":")
        line = http.client.HTTPConnection(host, int(port), timeout=60)
        line.request("GET", HEALTH)
        assert line.getresponse().read() == b"ok\n"
    finally:
        run("rm", "--force", name)
        run("volume", "rm", "--force", tag)
        run("rmi", "--force", tag)


@pytest.mark.slow
@pytest.mark.wheel
def test_the_services_become_healthy_together(tmp_path):
    docker = engine()
    if docker is None:
        pytest.skip("no container engine answers on this machine")
    project = f"goldspan-test-{os.getpid()}"
    (tmp_path / "data").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "database-password").write_text("made-up-for-a-test")
    run = goldspan_run("init", "--example", "data/demo", cwd=tmp_path)
    assert run.returncode == 0
    for one in (tmp_path / "data" / "demo").iterdir():
        name = "plan.toml" if one.name == "serve.toml" else one.name
        one.rename(tmp_path / "data" / name)
    subprocess.run(["chown", "-R", "10001:10001", str(tmp_path / "data")], check=True)
    tag = f"{project}:now"
    made = compose()
    made["services"]["goldspan"]["image"] = tag
    del made["services"]["goldspan"]["build"]
    (tmp_path / "compose.yaml").write_text(yaml.safe_dump(made))
    words = [docker, "compose", "--project-name", project]
    env = {**os.environ, "GOLDSPAN_PUBLIC_URL": "https://labels.example.org"}
    more = {"env": env, "capture_output": True, "text": True, "timeout": PATIENCE}
    subprocess.run([docker, "build", "--tag", tag, str(ROOT)], check=True, **more)
    try:
        up = subprocess.run([*words, "up", "--detach", "--wait"], cwd=tmp_path, **more)
        assert up.returncode == 0, up.stderr
    finally:
        subprocess.run([*words, "down", "--volumes"], cwd=tmp_path, **more)
        subprocess.run([docker, "rmi", "--force", tag], **more)
