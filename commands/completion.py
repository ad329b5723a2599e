"""warcmill completion: print the completion script of a shell."""

from __future__ import annotations

import argparse

SUMMARY = "print the completion script for bash, zsh or fish"
EPILOG = """\
examples:
  warcmill completion bash > /etc/bash_completion.d/warcmill
  source <(warcmill completion zsh)
  warcmill completion fish > ~/.config/fish/completions/warcmill.fish

Completes verbs, options, steps, stages, files, and the names of jobs and launches found
in the folders of the luigi.cfg that LUIGI_CONFIG_PATH names.

exit codes: 0 printed, 2 usage
"""
BASH = r"""# warcmill, for bash: source <(warcmill completion bash)
_warcmill() {
    mapfile -t COMPREPLY < <(warcmill __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _warcmill warcmill
"""
ZSH = r"""#compdef warcmill
# warcmill, for zsh: a file _warcmill in a folder of $fpath, or source <(warcmill completion zsh) after compinit
_warcmill() {
    local -a found
    found=("${(@f)$(warcmill __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=("${(@)found:#}")
    if (( $#found )); then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _warcmill ]]; then _warcmill "$@"; else compdef _warcmill warcmill; fi
"""
FISH = r"""# warcmill, for fish: warcmill completion fish | source
function __warcmill_complete
    set -l before (commandline -opc)
    set -l begun (commandline -ct)
    warcmill __complete $before[2..-1] "$begun" 2>/dev/null
end
complete -c warcmill -f -a '(__warcmill_complete)'
complete -c warcmill -n 'not string length -q -- (__warcmill_complete)' -F
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SHELL."""
    parser.add_argument("shell", choices=sorted(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the shell's script."""
    print(SCRIPTS[args.shell], end="")
    return 0
