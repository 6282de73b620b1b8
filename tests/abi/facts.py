# SPDX-License-Identifier: BSD-2-Clause
"""What a C header fixes, as a dictionary {fact: value}, for comparison with another's.

    size struct ibv_wc                48
    field struct ibv_wc.wr_id         at 0: unsigned long
    value IBV_WC_RECV                 128
    function ibv_query_gid            int(struct ibv_context*, unsigned char, int, ...)
    macro IBV_ACCESS_OPTIONAL_FIRST   its expansion; a macro with arguments: how many

The compiler is asked, not the text: types, values and signatures are read from the debug
information of a file that includes the header.  The preprocessed text only says which names
the header declares.
"""
import pathlib
import re
import subprocess
import tempfile

WORD = re.compile(r"[A-Za-z_]\w*")
NOT_A_FUNCTION = {"__attribute__", "__extension__", "__typeof__", "__asm__", "_Static_assert"}
GUARD = re.compile(r"_H_?$")
DIE = re.compile(r"^ *<(\w+)><(\w+)>: Abbrev Number: (\d+)(?: \((\w+)\))?")
ATTRIBUTE = re.compile(r"^ *<\w+> +DW_AT_(\w+) *: (.*)$")
FORM = re.compile(r"^\(\w+\) ")	# newer versions of readelf say it, older ones don't
REFERENCE = re.compile(r"<0x(\w+)>")


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          **options).stdout


class Text:
    """The preprocessed header: what of it is from files whose path matches @places."""

    def __init__(self, compiler, header, places):
        out = run(*compiler, "-E", "-dD", "-xc", "-", input="#include <%s>\n" % header)
        self.macros = {}		# name -> number of arguments, or None
        code, is_ours = [], False
        for line in out.splitlines():
            marker = re.match(r'# \d+ "([^"]*)"', line)
            if marker:
                is_ours = bool(re.search(places, marker[1]))
            elif is_ours and line.startswith("#define "):
                self.add_macro(line)
            elif is_ours and line.startswith("#undef "):
                self.macros.pop(line.split()[1], None)
            elif is_ours and not line.startswith("#"):
                code.append(line)
        self.code = "\n".join(code)
        self.words = set(WORD.findall(self.code))

    def add_macro(self, line):
        match = re.match(r"#define (\w+)(\([^)]*\))?( .*)?", line)
        name, arguments, body = match.groups()
        if name.startswith("_") or (GUARD.search(name) and not (body or "").strip()):
            return
        self.macros[name] = len(arguments.split(",")) if arguments else None

    def types(self):
        return {"%s %s" % match for match in
                re.findall(r"\b(struct|union|enum)\s+(\w+)\s*\{", self.code)}

    def functions(self):
        """Names before a parenthesis that are inside of nothing."""
        depth, last, found = 0, "", set()
        for token in re.findall(r'"[^"]*"|\w+|[^\w\s]', self.code):
            if token == "(" and depth == 0 and WORD.fullmatch(last):
                found.add(last)
            depth += (token in "({[") - (token in ")}]")
            last = token
        return found - NOT_A_FUNCTION


class Die:
    """An entry of the debug information."""

    def __init__(self, tag):
        self.tag, self.attributes, self.children = tag, {}, []

    def __getattr__(self, name):
        return self.attributes.get(name)

    def number(self, name):
        return int(self.attributes.get(name, "0").split()[0], 0)


class Debug:
    def __init__(self, path):
        self.dies, stack = {}, []
        for line in run("readelf", "--wide", "--debug-dump=info", str(path)).splitlines():
            match = DIE.match(line)
            if match:
                depth, offset, abbreviation, tag = match.groups()
                del stack[int(depth):]
                if abbreviation == "0":
                    continue
                die = self.dies[int(offset, 16)] = Die(tag.replace("DW_TAG_", ""))
                if stack:
                    stack[-1].children.append(die)
                stack.append(die)
                continue
            match = ATTRIBUTE.match(line)
            if match and stack:
                value = FORM.sub("", match[2].strip())
                if match[1] == "name":
                    value = value.rsplit(": ", 1)[-1]
                stack[-1].attributes[match[1]] = value

    def target(self, die):
        return self.dies[int(REFERENCE.search(die.type)[1], 16)] if die.type else None

    def spell(self, die):
        """The type as C would say it, roughly; typedefs are looked through."""
        if die is None:
            return "void"
        below = self.target(die)
        if die.tag == "typedef":
            return self.spell(below)
        if die.tag == "pointer_type":
            return self.spell(below) + "*"
        if die.tag in ("const_type", "volatile_type"):
            return "%s %s" % (die.tag[:-5], self.spell(below))
        if die.tag == "array_type":
            counts = [c.upper_bound or c.count or "" for c in die.children]
            return self.spell(below) + "".join("[<=%s]" % count for count in counts)
        if die.tag == "subroutine_type":
            return "%s(%s)" % (self.spell(below), ", ".join(
                self.spell(self.target(c)) if c.type else "..." for c in die.children))
        kind = {"structure_type": "struct ", "union_type": "union ", "enumeration_type": "enum "}
        return kind.get(die.tag, "") + (die.name or "{}")

    def fields(self, die, base=0, prefix=""):
        """(path, "at offset: type") of each member, those of nameless structures too."""
        for member in die.children:
            if member.tag != "member":
                continue
            below = self.target(member)
            offset = base + member.number("data_member_location")
            path = prefix + (member.name or "")
            if below.tag in ("structure_type", "union_type") and not below.name:
                yield from self.fields(below, offset, path + "." if member.name else prefix)
                continue
            bits = " bit %s" % member.data_bit_offset if member.data_bit_offset else ""
            yield path, "at %d%s: %s" % (offset, bits, self.spell(below))

    def facts(self):
        for die in self.dies.values():
            if die.tag in ("structure_type", "union_type") and die.name and not die.declaration:
                name = self.spell(die)
                yield "size " + name, die.number("byte_size")
                for path, value in self.fields(die):
                    yield "field %s.%s" % (name, path), value
            elif die.tag == "enumeration_type" and die.name:
                yield "size " + self.spell(die), die.number("byte_size")
            elif die.tag == "enumerator":
                yield "value " + die.name, die.number("const_value")
            elif die.tag == "variable" and die.name.startswith("abi_"):
                yield "function " + die.name[4:], self.spell(self.target(self.target(die)))


def expansions(compiler, header, names):
    """What each macro without arguments stands for, without blanks."""
    probe = "#include <%s>\n" % header + "".join("@%s=%s\n" % (n[:1] + "@" + n[1:], n)
                                                 for n in sorted(names))
    out = run(*compiler, "-E", "-P", "-xc", "-", input=probe)
    found = re.findall(r"^ *@ *(\w) *@ *(\w+) *=(.*)$", out, re.MULTILINE)
    return {first + rest: re.sub(r"\s", "", value) for first, rest, value in found}


def facts_of(compiler, header, places):
    """All facts of the names that files at @places declare; @compiler is a list."""
    text = Text(compiler, header, places)
    functions = text.functions()
    source = "#include <%s>\n" % header + "".join(
        "__typeof__(%s) *abi_%s;\n" % (name, name) for name in sorted(functions))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "facts.o")
        run(*compiler, "-g", "-gdwarf-4", "-O0", "-fno-eliminate-unused-debug-types", "-c",
            "-xc", "-", "-o", str(path), input=source)
        every = dict(Debug(path).facts())
    types = text.types()
    facts = {}
    for fact, value in every.items():
        kind, name = fact.split(" ", 1)
        if kind == "function" or (kind == "value" and name in text.words) or (
                kind in ("size", "field") and name.split(".")[0] in types):
            facts[fact] = value
    plain = expansions(compiler, header, [n for n, count in text.macros.items() if count is None])
    for name, count in text.macros.items():
        facts["macro " + name] = plain.get(name, "") if count is None else "%d arguments" % count
    return facts
