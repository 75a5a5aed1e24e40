import http.server
import json
import math
import socketserver
import threading

import pytest

from vernier_hpo import params, report


@pytest.mark.parametrize("argv, want", [
    (["--lr=0.5", "--layers", "3"], {"lr": 0.5, "layers": 3, "name": "net", "deep": False}),
    (["--name=7", "--deep", "--lr", "1"], {"lr": 1.0, "layers": 2, "name": "7", "deep": True}),
    (["train", "--deep=false", "--", "--more=1e-3"], {"lr": 0.1, "layers": 2, "name": "net", "deep": False, "more": 1e-3}),
    (["--lr=-3", "--batch-size=8"], {"lr": -3.0, "layers": 2, "name": "net", "deep": False, "batch_size": 8}),
])
def test_params_of_the_command_line(argv, want):
    got = params({"lr": 0.1, "layers": 2, "name": "net", "deep": False}, argv)
    assert got == want and type(got["lr"]) is float


def test_params_of_a_file(monkeypatch, tmp_path):
    file = tmp_path / "params.json"
    file.write_text('{"lr": 0.25, "opt": "adam"}')
    monkeypatch.setenv("VERNIER_PARAMS_FILE", str(file))
    monkeypatch.setattr("sys.argv", ["train.py", "--layers=3"])
    assert params({"lr": 0.1, "layers": 2}) == {"lr": 0.25, "layers": 3, "opt": "adam"}


def test_params_of_a_file_have_the_types_of_the_defaults(monkeypatch, tmp_path):
    file = tmp_path / "params.json"
    file.write_text('{"lr": 1, "deep": "false", "name": 7, "layers": 3, "more": "1"}')
    monkeypatch.setenv("VERNIER_PARAMS_FILE", str(file))
    monkeypatch.setattr("sys.argv", ["train.py"])
    got = params({"lr": 0.1, "deep": True, "name": "net", "layers": 2})
    assert got == {"lr": 1.0, "deep": False, "name": "7", "layers": 3, "more": "1"} and type(got["lr"]) is float


def test_reports_are_printed_in_full_precision(monkeypatch, capsys):
    monkeypatch.delenv("VERNIER_PUSH_SOCKET", raising=False)
    report(step=3, loss=1 / 3, acc=math.inf)
    assert capsys.readouterr().out == "step=3 loss=0.3333333333333333 acc=inf\n"


def test_reports_are_pushed_to_the_sidecar(monkeypatch, tmp_path):
    got, status = [], [200]

    class Sidecar(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(status[0])
            self.end_headers()

        def address_string(self):
            return "unix"

        def log_message(self, *_):
            pass

    path = str(tmp_path / "push.sock")
    with socketserver.UnixStreamServer(path, Sidecar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("VERNIER_PUSH_SOCKET", path)
        report({"val/loss": 0.5}, step=1)
        assert got == [("/report", {"val/loss": 0.5, "step": 1})]
        status[0] = 507
        with pytest.raises(OSError, match="507"):
            report(loss=1)
        server.shutdown()
