from pathlib import Path

import pytest

from rrmstats.files import check_target, write_whole


@pytest.mark.parametrize("content", ["naïve\n", "naïve\n".encode()])
def test_text_and_bytes_are_written_alike(content, tmp_path):
    write_whole(tmp_path / "out", content)
    assert (tmp_path / "out").read_bytes() == b"na\xc3\xafve\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "out", b"")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("step", ["open", "replace"])
def test_an_error_names_the_file_and_leaves_everything_as_it_was(step, tmp_path, monkeypatch):
    target = tmp_path / "out"
    target.write_text("old")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, step, refuse)
        with pytest.raises(PermissionError) as error:
            write_whole(target, "new")
    assert str(error.value) == f"cannot write {target}: Permission denied"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert target.read_text() == "old"


def test_a_directory_is_not_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(OSError, match=r"^cannot write .*out: "):
        write_whole(tmp_path / "out", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_targets(tmp_path):
    check_target(tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"the directory .*none does not exist; create"):
        check_target(tmp_path / "none" / "out")
    with pytest.raises(IsADirectoryError, match="is a directory; give the name of a file in it"):
        check_target(tmp_path)
