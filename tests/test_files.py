from pathlib import Path

import pytest

from rrmstats.files import check_target, write_all, write_whole


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


@pytest.mark.parametrize("existing", [["a", "b", "c"], ["b", "c"], ["a"], []])
def test_files_in_place_are_put_back_where_a_later_one_fails(existing, tmp_path, monkeypatch):
    for name in existing:
        (tmp_path / name).write_text(f"old {name}")
    replace = Path.replace

    def refuse_c(part, target):
        if target.name == "c" and part.name.endswith(".part"):
            raise PermissionError(13, "Permission denied")
        return replace(part, target)

    contents = {tmp_path / name: f"new {name}" for name in "abc"}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse_c)
        with pytest.raises(PermissionError, match=r"cannot write .*c: Permission denied"):
            write_all(contents)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: f"old {name}" for name in existing
    }
    write_all(contents)
    assert {path: path.read_text() for path in tmp_path.iterdir()} == contents
