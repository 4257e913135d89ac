"""The Hugging Face Hub: files of a data set by their address, and a folder that becomes one.

An address is `hf://datasets/OWNER/NAME`, perhaps with the path of a folder or a file in it. Token,
endpoint and cache are those of `huggingface_hub`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from goldspan import __version__
from goldspan.errors import InputError, MissingExtraError

ANSWERS, GOLD = "answers", "gold"
"""The configurations that goldspan writes, each in a folder of its own."""
_ADDRESS = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(/.+)?")
_DATA = (".parquet", ".jsonl", ".json", ".csv", ".tsv", ".conll", ".txt", ".zip", ".gz")
_LOG_IN = "log in by `hf auth login`, or set HF_TOKEN"
_MEANING = {
    401: f"the Hub asks for a token, or does not take this one: {_LOG_IN}",
    403: "the token may not do this: is OWNER your account, and may the token write?",
    404: f"there is no such data set, or it is private: check the name, and {_LOG_IN}",
}


def hub() -> Any:
    """Return the library's interface to the Hub."""
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub", "the Hugging Face Hub") from None
    own = {"library_name": "goldspan", "library_version": __version__}
    return HfApi(os.environ.get("HF_ENDPOINT"), **own)


def parse(address: str) -> tuple[str, str]:
    """Return the name and the path of an address."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise InputError(f"{address}: an address on the Hub is hf://datasets/OWNER/NAME")
    return found[1], (found[2] or "").strip("/")


def fetch(address: str) -> tuple[str, Path]:
    """Download one file; return its whole address, and where it lies in the library's cache.

    Without a path it is the file in the folder `answers` or, where there is none, the only one.
    """
    (repo, path), api = parse(address), hub()
    with _worded(address, api):
        known = api.repo_info(repo, repo_type="dataset").siblings
        files = [one.rfilename for one in known if one.rfilename.endswith(_DATA)]
        found = [name for name in files if f"{name}/".startswith(f"{path or ANSWERS}/")]
        found = found or ([] if path else files)
        if len(found) != 1:
            listed = ", ".join((found or files)[:10]) or "none"
            raise InputError(f"{address}: name one of its files of data: {listed}")
        local = api.hf_hub_download(repo, found[0], repo_type="dataset")
    return f"hf://datasets/{repo}/{found[0]}", Path(local)


def upload(address: str, folder: Path, *, public: bool) -> str:
    """Make the files of a folder those of a data set, in one commit; return its page.

    Raises:
        InputError: The token may not do it; or the data set is there, and seen by others than said.
    """
    repo, api, where = parse(address)[0], hub(), {"repo_type": "dataset"}
    with _worded(address, api):
        api.create_repo(repo, private=not public, exist_ok=True, **where)
        if api.repo_info(repo, **where).private == public:
            is_, how = ("private", "without") if public else ("public", "with")
            raise InputError(f"{address} is {is_} already: send {how} --public, or to another name")
        api.upload_folder(
            repo_id=repo,
            folder_path=folder,
            delete_patterns=[f"{ANSWERS}/*", f"{GOLD}/*"],
            commit_message=f"Labels by goldspan {__version__}",
            **where,
        )
    return f"{api.endpoint}/datasets/{repo}"


@contextmanager
def _worded(address: str, api: Any) -> Iterator[None]:
    """Say what went wrong at the Hub, without the token."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code
        why = _MEANING.get(status, f"the Hub answered with status {status}")
        raise InputError(f"{address}: {why}") from None
    except (HTTPError, OSError) as error:
        why = str(error).split("\n", 1)[0][:200]
        raise InputError(f"{address}: {api.endpoint} cannot be reached ({why})") from None
