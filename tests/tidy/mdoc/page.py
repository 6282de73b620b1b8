# SPDX-License-Identifier: BSD-2-Clause
"""Reads of a manual page what a check can compare: names, prototypes, blocks of code."""
import dataclasses
import re
import shlex

ESCAPES = (("\\e", "\\"), ("\\&", ""), ("\\-", "-"), ("\\(dq", '"'), ("\\(aq", "'"),
           ("\\(ga", "`"), ("\\(ti", "~"), ("\\(ha", "^"))
# A type, a name, arguments.
PROTOTYPE = re.compile(r"^((?:[A-Za-z_]\w*[ *]+)+)(\w+)\(([^;{]*)\);", re.MULTILINE)


def plain(text):
    for escape, meaning in ESCAPES:
        text = text.replace(escape, meaning)
    return text


def words(rest):
    """The arguments of a macro, without the punctuation that stands behind them."""
    return [w for w in shlex.split(rest.replace("'", "\\'")) if w not in (",", ".", ";", ":")]


@dataclasses.dataclass
class Declaration:
    line: int
    type: str
    name: str
    arguments: list		# each "struct ibv_pd *pd"

    def prototype(self):
        space = "" if self.type.endswith("*") else " "
        arguments = ", ".join(self.arguments or ["void"])
        # In brackets, so that a macro of that name is left alone.
        return "%s%s(%s)(%s);" % (self.type, space, self.name, arguments)

    def call(self):
        names = [re.findall(r"\w+", a)[-1] for a in self.arguments if a != "void"]
        gives = "" if self.type == "void" else "return "
        return "%s%s(%s);" % (gives, self.name, ", ".join(names))


@dataclasses.dataclass
class Block:
    line: int			# of its first line of text
    section: str
    text: str


class Page:
    def __init__(self, path):
        self.path = path
        self.section = path.suffix[1:]
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.name = path.stem

    def walk(self):
        """Each line with its number and the section that it is in."""
        section = ""
        for number, line in enumerate(self.lines, 1):
            if line.startswith(".Sh "):
                section = line[4:].strip().strip('"')
            yield number, section, line

    def sections(self):
        return [line[4:].strip().strip('"') for line in self.lines if line.startswith(".Sh ")]

    def names(self):
        return [words(line[4:])[0] for _, section, line in self.walk()
                if section == "NAME" and line.startswith(".Nm ")]

    def declarations(self):
        return self.marked_declarations() + self.literal_declarations()

    def literal_declarations(self):
        """Prototypes in blocks of SYNOPSIS, as they would stand in a header."""
        found = []
        for block in self.blocks():
            if block.section != "SYNOPSIS":
                continue
            for match in PROTOTYPE.finditer(block.text):
                kind, name, arguments = (" ".join(part.split()) for part in match.groups())
                line = block.line + block.text[:match.start(2)].count("\n")
                arguments = arguments.split(", ") if arguments not in ("", "void") else []
                found.append(Declaration(line, kind, name, arguments))
        return found

    def marked_declarations(self):
        """Prototypes in .Ft and .Fn or .Fo."""
        kind, open_one, found = None, None, []
        for number, section, line in self.walk():
            macro, _, rest = line.partition(" ")
            if section != "SYNOPSIS":
                continue
            if macro == ".Ft":
                kind = " ".join(words(rest))
            elif macro == ".Fn":
                name, *arguments = words(rest)
                found.append(Declaration(number, kind, name, arguments))
            elif macro == ".Fo":
                open_one = Declaration(number, kind, words(rest)[0], [])
            elif macro == ".Fa" and open_one:
                open_one.arguments += words(rest)
            elif macro == ".Fc":
                found.append(open_one)
                open_one = None
        return found

    def blocks(self):
        """What stands between .Bd -literal and .Ed: code and structures."""
        found, text, start = [], None, 0
        for number, section, line in self.walk():
            if line.startswith(".Bd -literal"):
                text, start = [], number + 1
            elif line == ".Ed" and text is not None:
                found.append(Block(start, section, "\n".join(text)))
                text = None
            elif text is not None:
                text.append(plain(line))
        return found
