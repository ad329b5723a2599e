"""A parser's help has the usage of each of its subcommands."""

from __future__ import annotations

import argparse

import pytest

from warcmill.scutils.argparse_helper import ArgparseHelper


def a_parser() -> argparse.ArgumentParser:
    """The documented one: two commands that share an option."""
    parser = argparse.ArgumentParser(prog="family.py", description="Prints family members", add_help=False)
    parser.add_argument("-h", "--help", action=ArgparseHelper, help="show this help message and exit")
    commands = parser.add_subparsers(help="commands", dest="command")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("-n", "--name", required=True)
    brother = commands.add_parser("bro", help="Prints only the brother's name", parents=[shared])
    brother.add_argument("-b", "--brother", required=True)
    family = commands.add_parser("fam", help="Prints mom and sister's name", parents=[shared])
    family.add_argument("-s", "--sister", required=True)
    family.add_argument("-m", "--mom", default="Mom")
    return parser


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_the_usage_of_every_command_after_that_of_the_program(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        a_parser().parse_args([option])
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert printed.startswith("usage: family.py [-h] {bro,fam} ...\n\nPrints family members\n")
    assert "  -h, --help  show this help message and exit\n" in printed
    assert printed.endswith(
        "\nCommand 'bro'\nusage: family.py bro [-h] -n NAME -b BROTHER\n"
        "\nCommand 'fam'\nusage: family.py fam [-h] -n NAME -s SISTER [-m MOM]\n\n"
    )


def test_commands_are_parsed_as_ever() -> None:
    parsed = a_parser().parse_args(["fam", "-n", "Bill", "-s", "Kathy"])
    assert vars(parsed) == {"command": "fam", "name": "Bill", "sister": "Kathy", "mom": "Mom"}


def test_a_parser_without_commands_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser(prog="alone", add_help=False)
    parser.add_argument("-h", action=ArgparseHelper)
    with pytest.raises(SystemExit):
        parser.parse_args(["-h"])
    assert "Command" not in capsys.readouterr().out
