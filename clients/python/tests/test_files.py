import pytest

from vernier_hpo import Study, VernierError, uniform


def test_a_damaged_line_of_a_file_is_named(tmp_path):
    file = tmp_path / "s.jsonl"
    with Study({"x": uniform(0, 1)}, minimize="loss", trials=2, file=str(file)) as study:
        for trial in study:
            trial.succeed(1)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], lines[2][:9] + b"\n", *lines[3:]]))
    with pytest.raises(VernierError, match="s.jsonl, line 3, is damaged"):
        Study({"x": uniform(0, 1)}, minimize="loss", trials=2, file=str(file))
