"""The command line of a command of ./stage. Every text of its --help is a message of stages/messages.json."""
import argparse
import re

from shared import course

# argparse's own texts, in Chinese. It passes each of its texts to `_`, a global of its module, which is gettext. Python
# has no catalogues for gettext, and ours would be binary files (.mo). So here `_` is a look-up in this table. If
# another version of Python has another wording, that text stays English.
CHINESE = {
    "usage: ": "用法：",
    "positional arguments": "参数",
    "options": "选项",
    "show this help message and exit": "显示这段帮助",
    "%(prog)s: error: %(message)s\n": "%(prog)s：%(message)s\n",
    "argument %(argument_name)s: %(message)s": "%(argument_name)s：%(message)s",
    "the following arguments are required: %s": "还缺少参数：%s",
    "unrecognized arguments: %s": "不认识的参数：%s",
    "ambiguous option: %(option)s could match %(matches)s": "%(option)s 不明确，可能是 %(matches)s",
    "expected one argument": "后面要写一个值",
    "ignored explicit argument %r": "后面不能写值，却有 %r",
    "not allowed with argument %s": "不能与 %s 同时使用",
    "invalid choice: %(value)r (choose from %(choices)s)": "没有 %(value)r 这一项，可选：%(choices)s",
    "invalid %(type)s value: %(value)r": "%(value)r 不是有效的 %(type)s 值",
}
COLON = re.compile(r"(?<=[\u4e00-\u9fff]):$", re.M)  # argparse ends headings with ":" in every language

argparse._ = lambda text: CHINESE.get(text, text) if course.language() == "zh" else text


def whole(low, high):
    """The type of an argument that is a whole number from low to high."""
    def value_of(text):
        if not (re.fullmatch("[0-9]{1,19}", text) and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(course.say("expected_whole", low, high, text))
        return int(text)

    return value_of


SEEDS = whole(0, (1 << 63) - 1)
JOBS = whole(1, 1024)


class Formatter(argparse.HelpFormatter):
    """Keeps line breaks, and counts columns instead of characters: a Chinese character takes two."""

    def _format_usage(self, usage, actions, groups, prefix):
        prefix = prefix or argparse._("usage: ")
        room = " " * course.width(prefix)
        return super()._format_usage(usage, actions, groups, room).replace(room, prefix, 1)

    def _split_lines(self, text, width):
        lines = re.findall(r"^( *)(.*)$", text, re.M)
        return [part for margin, line in lines for part in course.wrapped(line, width, margin, margin)]

    def _fill_text(self, text, width, indent):
        return "\n".join(self._split_lines(text, width))

    def format_help(self):
        return COLON.sub("：", super().format_help())


class Parser(argparse.ArgumentParser):
    """Parser("test") takes its texts from messages: help_test says what ./stage test does, help_test_example has
    examples, and help_test_ + the name of an argument in the result explains the argument. A missing message is a
    KeyError."""

    def __init__(self, command):
        self.key = f"help_{command}"
        super().__init__(prog=f"./stage {command}", description=course.say(self.key),
                         epilog=course.say(f"{self.key}_example"), formatter_class=Formatter)

    def add_argument(self, *names, **settings):
        action = super().add_argument(*names, **settings)
        if action.help is None:
            action.help = course.say(f"{self.key}_{action.dest}")
        return action

    def print_help(self, file=None):
        course.page(self.format_help().rstrip("\n").split("\n"))

    def print_usage(self, file=None):  # called if the command line is wrong
        super().print_usage(file)
        print(self.epilog.splitlines()[0], file=file)

    def error(self, message):
        super().error(message.removeprefix("argument "))  # "--seed: ..." is enough; never Chinese before 3.11
