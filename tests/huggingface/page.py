"""The two tables of docs/huggingface.md, from facts.toml and compared.json; tests/test_docs.py compares them."""

from collections import defaultdict

from posenc.huggingface import facts

SCHEMES = {
    "alibi": "`alibi`",
    "mpt": "`alibi`",
    "falcon": "`rope`, or `alibi` where the config says so",
    "vo_rope": "`vo_rope` of the last part of each head, a window on every layer",
    "t5": "`t5`, a table of buckets",
    "learned": "`learned`, a table of positions",
    "sinusoidal": "`sinusoidal`",
    "nope": "`nope`: only other layers know the order",
    "esm": "`learned`, or `rope` with position_embedding_type",
    "granitemoehybrid": "`nope`, or `rope` with position_embedding_type",
    "zamba2": "`nope`, or `rope` with use_mem_rope",
}


def described(one):
    """What a type is read as, in the words of the page."""
    if one.scheme != "rope":
        return SCHEMES[one.scheme]
    words = ["`mrope`" if one.sections else "`rope`"]
    words += ["interleaved pairs"] if one.layout == "interleaved" else []
    if one.joined:
        words.append("the second part of each head")
    elif one.width or (one.fraction or 1) != 1:
        words.append("a share of each head")
    if "S" in one.layers or one.windows == "all" or not one.layers:
        some = "every layer" if one.windows == "all" else "some layers"
        words.append(f"a window on {some}" + (", on both sides of a query" if one.side != "past" else ""))
    words += ["chunks on layers that rotate"] if "C" in one.layers else []
    words += ["layers without rotation"] if one.turns != "all" else []
    words += ["layers without attention left out"] if "L" in one.layers else []
    words += ["`llama4` before it"] if one.temperature == "all" else []
    return ", ".join(words)


def read():
    found = defaultdict(list)
    for kind, line in facts.compared().items():
        if "difference" in line and "released" not in line:
            found[described(facts.types()[kind]) if kind in facts.types() else "as its text part"].append(kind)
    yield "read as", "number", "model types"
    for label, kinds in sorted(found.items(), key=lambda row: (-len(row[1]), row[0])):
        yield label, str(len(kinds)), " ".join(sorted(kinds, key=str.lower))
    yield "all that are read", str(sum(map(len, found.values()))), f"of {len(facts.compared())} model types"


def refused():
    found = defaultdict(list)
    for kind, line in facts.compared().items():
        if "released" in line:
            found[f"as released: {line['released']}"].append(kind)
        if "refused" in line:
            found[line["refused"]].append(kind)
    yield "refused because", "number", "model types"
    for why, kinds in sorted(found.items(), key=lambda row: (-len(row[1]), row[0])):
        yield why, str(len(kinds)), " ".join(sorted(kinds, key=str.lower))
