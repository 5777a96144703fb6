"""The validation layer: found, put in place, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from investigate_kit import GOLDEN
from llamawright.verify import investigate_layers as layers
from llamawright.verify.investigate_layers import LAYER, Layers, of_machine, read_messages

OLD = (GOLDEN / "investigate-layers-old.txt").read_text()
# As layers 1.3.239 and 1.4.309 print a buffer of no size.
OLD_FORM = (
    "VUID-VkBufferCreateInfo-size-00912(ERROR / SPEC): msgNum: 1583147271 - Validation Error: "
    "[ VUID-VkBufferCreateInfo-size-00912 ] Object 0: handle = 0x55, type = VK_OBJECT_TYPE_DEVICE; "
    "| MessageID = 0x5e5cdd07 | vkCreateBuffer(): size is 0. The Vulkan spec states: size must be "
    "greater than 0\n    Objects: 1\n        [0] 0x55, type: 3, name: NULL\n"
)
NEW_FORM = (
    "Validation Error: [ VUID-VkBufferCreateInfo-size-00912 ] | MessageID = 0x5e5cdd07\n"
    "vkCreateBuffer(): pCreateInfo->size is zero.\nThe Vulkan spec states: size must be greater\n"
)


def describe(folder: Path, *, name: str = LAYER, text: str = "") -> Path:
    path = folder / "vulkan" / "explicit_layer.d" / "VkLayer_khronos_validation.json"
    path.parent.mkdir(parents=True)
    layer = {"name": name, "library_path": "libx.so", "api_version": "1.3.239"}
    path.write_text(text or json.dumps({"layer": layer}))
    return path


def test_a_real_message_of_an_old_layer_is_doubted() -> None:
    (message,) = read_messages(OLD)
    assert message.id == "VUID-VkInstanceCreateInfo-pNext-pNext (error)"
    assert "unknown VkStructureType (1000496000)" in message.text
    assert "older" in message.doubt


@pytest.mark.parametrize("text", [OLD_FORM, NEW_FORM])
def test_both_forms_of_a_message_are_read(text: str) -> None:
    (message,) = read_messages(text)
    assert message.id == "VUID-VkBufferCreateInfo-size-00912 (error)"
    assert message.text.startswith("vkCreateBuffer(): ")
    assert message.doubt == ""


def test_a_message_is_told_once_and_counted() -> None:
    (message,) = read_messages(NEW_FORM * 7)
    assert message.count == 7


def test_errors_that_are_sure_come_first() -> None:
    warning = NEW_FORM.replace("Error", "Warning")
    found = read_messages(OLD + warning + NEW_FORM)
    assert [(m.id.rpartition(" ")[2], bool(m.doubt)) for m in found] == [
        ("(error)", False), ("(warning)", False), ("(error)", True),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "no message", "Validation Error:", "\0\0", "Validation"])
def test_what_is_no_message_is_none(text: str) -> None:
    assert read_messages(text) == ()


def test_a_message_at_the_end_of_a_file_that_was_cut_off_is_one() -> None:
    (message,) = read_messages("Validation Error: [ VUID-x ] | MessageID = 0x1")
    assert (message.id, message.text) == ("VUID-x (error)", "")


def test_a_flood_is_cut() -> None:
    text = "".join(NEW_FORM.replace("00912", str(n)) for n in range(500))
    assert len(read_messages(text)) == layers.MOST_MESSAGES


def test_the_text_of_a_message_is_bounded() -> None:
    text = NEW_FORM.replace("size is zero", "x" * 9999)
    assert len(read_messages(text)[0].text) == layers.MOST_TEXT


def test_the_layer_is_asked_for_by_its_name_and_both_names_of_the_path(tmp_path: Path) -> None:
    given = Layers(name=LAYER, folder="/layers", version="1", where="provided")
    env = given.environment({"VK_INSTANCE_LAYERS": "mine"}, tmp_path / "settings.txt")
    assert env["VK_INSTANCE_LAYERS"] == f"mine:{LAYER}"
    assert (env["VK_LAYER_PATH"], env["VK_ADD_LAYER_PATH"]) == ("/layers", "/layers")
    assert env["VK_LAYER_SETTINGS_PATH"].endswith("settings.txt")


def test_a_layer_that_the_loader_finds_by_itself_gets_no_path(tmp_path: Path) -> None:
    given = Layers(name=LAYER, folder="", version="1", where="machine")
    assert set(given.environment({}, tmp_path)) == {"VK_INSTANCE_LAYERS", "VK_LAYER_SETTINGS_PATH"}


def test_the_machines_own_layer_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "FOLDERS", (str(tmp_path / "usr"),))
    assert of_machine({}) is None
    describe(tmp_path / "usr")
    found = of_machine({})
    assert found is not None
    assert (found.folder, found.version, found.where) == ("", "1.3.239", "machine")


def test_an_sdks_layer_goes_first_and_is_named_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "FOLDERS", (str(tmp_path / "usr"),))
    describe(tmp_path / "usr")
    path = describe(tmp_path / "sdk" / "share")
    found = of_machine({"VULKAN_SDK": str(tmp_path / "sdk")})
    assert found is not None
    assert found.folder == str(path.parent)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"layer": []}', '{"layer": {"name": "VK_LAYER_KHRONOS_validation"}}', "null"],
)  # fmt: skip
def test_a_description_that_is_none_is_passed_over(tmp_path: Path, text: str) -> None:
    path = describe(tmp_path, text=text or " ")
    assert layers.described(path, where="machine") is None


def test_another_layer_is_another_layer(tmp_path: Path) -> None:
    path = describe(tmp_path, name="VK_LAYER_MESA_overlay")
    assert layers.described(path, where="machine") is None


def test_the_settings_name_the_log_and_no_dialog(tmp_path: Path) -> None:
    text = layers.SETTINGS.format(log=tmp_path / "layers.log")
    assert f"log_filename = {tmp_path}/layers.log" in text
    assert "LOG_MSG" in text
