"""completion: the script that a shell loads."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: moonhook completion bash > ~/.local/share/bash-completion/completions/moonhook
    zsh:  moonhook completion zsh > a folder of $fpath, as _moonhook
    fish: moonhook completion fish > ~/.config/fish/completions/moonhook.fish
    """
    root = context.find_root().command
    click.echo(_SHELLS[shell](root, {}, "moonhook", "_MOONHOOK_COMPLETE").source())
