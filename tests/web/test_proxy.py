"""Behind a proxy: who is believed, what is passed on, and whether the server is well."""

from __future__ import annotations

import http.client
import re
import shutil
import signal
import socket
import ssl
import subprocess
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from goldspan.errors import InputError
from goldspan.web import ServerSettings
from goldspan.web.running import HERE, read_proxies
from goldspan.web.security.middleware import HEALTH
from web.loops import wait_until
from web.played import KEYS, Played
from web.test_running import served

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deploy.md"
PATIENCE = 120
"""Seconds: machines are slow at times."""
STRANGER, PROXY = "203.0.113.9", "10.1.2.3"


# Whom to believe


def test_without_names_a_proxy_on_this_machine_is_believed():
    assert read_proxies(None) == HERE == ("127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("10.0.0.7", ("10.0.0.7/32",)),
        (" 10.0.0.7 , 172.31.250.0/24 ", ("10.0.0.7/32", "172.31.250.0/24")),
        ("fd00::/8,::1", ("fd00::/8", "::1/128")),
    ],
)
def test_addresses_and_networks_are_read(given, found):
    assert read_proxies(given) == found


@pytest.mark.parametrize("given", ["", "*", "proxy.example.org", "10.0.0.7/24", "10.0.0.7,,::1"])
def test_what_is_not_an_address_is_rejected(given):
    with pytest.raises(InputError, match=r"--trusted-proxies: .* give addresses or networks"):
        read_proxies(given)


@pytest.mark.parametrize(
    ("trusted", "header", "seen"),
    [
        ("127.0.0.1", STRANGER, STRANGER),
        ("127.0.0.0/8", f"6.6.6.6, {STRANGER}", STRANGER),  # what a client wrote comes first
        (f"127.0.0.1,{PROXY}", f"6.6.6.6, {STRANGER}, {PROXY}", STRANGER),
        ("127.0.0.1", f"{STRANGER}, {PROXY}", PROXY),  # a proxy that is not trusted
        (PROXY, STRANGER, "127.0.0.1"),  # nobody who is trusted says so
    ],
)
def test_the_header_counts_from_trusted_proxies_alone(trusted, header, seen):
    with served(f"trusted={trusted}") as port:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}", headers={"X-Forwarded-For": header}
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            assert answer.read().decode() == seen


# Health


@pytest.fixture
def server():
    return Played(settings=ServerSettings(KEYS, "https://labels.example.org"))


@pytest.mark.parametrize("host", ["labels.example.org", "127.0.0.1:8080", "goldspan:8080", "x"])
def test_health_is_told_under_every_name_and_nothing_else_is(server, host):
    browser = server.browser()
    well = browser.get(HEALTH, headers={"Host": host})
    assert (well.status_code, well.text) == (200, "ok\n")
    assert well.headers["cache-control"] == "no-store"
    assert "set-cookie" not in well.headers
    for path in ("/login", f"{HEALTH}/", f"{HEALTH}/x", "/static/x/y.js"):
        other = browser.get(path, headers={"Host": host})
        assert (other.status_code == 400) == (host != "labels.example.org"), path


def test_health_can_be_asked_without_a_body_and_changed_by_nobody(server):
    browser = server.browser()
    assert browser.head(HEALTH).status_code == 200
    for method in ("POST", "PUT", "DELETE"):
        assert browser.request(method, HEALTH).status_code in {403, 405}


def test_a_server_that_may_have_lost_its_campaign_is_not_well(server, monkeypatch):
    held = server.app.state.context.held
    monkeypatch.setattr(type(held), "is_sure", property(lambda _: False))
    answer = server.browser().get(HEALTH, headers={"Host": "127.0.0.1:8080"})
    assert answer.status_code == 503
    assert "ok" not in answer.text.split()


def test_health_is_not_in_the_document(server):
    assert HEALTH not in server.app.openapi()["paths"]


# nginx, with the lines of the docs


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def nginx_lines():
    """Return the lines of the page for nginx."""
    return re.search(r"^```nginx\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]


def test_the_lines_for_nginx_are_whole_and_pass_on_what_goldspan_needs():
    lines = nginx_lines()
    assert lines.count("{") == lines.count("}")
    told = dict(re.findall(r"proxy_set_header (\S+) (\S+);", lines))
    assert told["Host"] == "$http_host"
    assert told["X-Forwarded-For"] == "$remote_addr"


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_the_requester_signs_in_through_nginx_by_https(tmp_path):
    from cli.test_invite import write_plan
    from cli.test_serve import started

    port = free_port()
    openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    files = ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*openssl, *files, *names], cwd=tmp_path, check=True, capture_output=True)
    words = ["--no-loop", "--public-url", f"https://localhost:{port}", "--log-level", "debug"]
    goldspan_port = free_port()
    process, said = started(
        write_plan(tmp_path), tmp_path / "out", *words, "--port", str(goldspan_port)
    )
    lines = nginx_lines()
    for old, new in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "server_name labels.example.org": "server_name localhost",
        "/etc/ssl/labels/fullchain.pem": str(tmp_path / "cert.pem"),
        "/etc/ssl/labels/privkey.pem": str(tmp_path / "key.pem"),
        "127.0.0.1:8080": f"127.0.0.1:{goldspan_port}",
    }.items():
        assert old in lines
        lines = lines.replace(old, new)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {tmp_path / kind};" for kind in kinds)
    own = f"pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log; daemon off; events {{}}"
    conf = tmp_path / "nginx.conf"
    conf.write_text(f"{own}\nhttp {{ access_log off; {folders}\n{lines}\n}}\n")
    nginx = subprocess.Popen(["nginx", "-c", str(conf), "-p", str(tmp_path)])
    try:
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        wait_until(lambda: is_open(port))
        line = http.client.HTTPSConnection("localhost", port, context=context, timeout=PATIENCE)
        with closing(line):
            line.request("GET", HEALTH)
            assert line.getresponse().read() == b"ok\n"
            (setup,) = re.findall(rf"https://localhost:{port}(/setup/\S+)", said)
            line.request("GET", setup, headers={"X-Forwarded-For": "6.6.6.6"})
            answer = line.getresponse()
            page = answer.read().decode()
        assert answer.status == 200
        assert "max-age" in answer.headers["Strict-Transport-Security"]
        assert "password" in page
        cookies = answer.headers.get_all("Set-Cookie") or []
        assert all(one.startswith("__Host-") and "Secure" in one for one in cookies)
    finally:
        nginx.send_signal(signal.SIGQUIT)
        nginx.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
