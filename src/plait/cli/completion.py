"""`plait completion`: the script that makes a shell complete commands, options and file names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of your shell.

    \b
    Examples:
      plait completion bash >> ~/.bashrc
      plait completion zsh >> ~/.zshrc
      plait completion fish > ~/.config/fish/completions/plait.fish
    """
    completion = get_completion_class(shell)
    assert completion is not None, shell
    click.echo(completion(context.find_root().command, {}, "plait", "_PLAIT_COMPLETE").source())
