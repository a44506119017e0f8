# SPDX-License-Identifier: Apache-2.0
"""The index of conditions changes no decision: rules in random order decide like the same rules with an impossible rule between any
two of them, which leaves nothing to index."""
import random

import pytest

import regexes

RULES, REQUESTS = 24, 80
VALUES = ["a", "b", "ab", "*a*", "a*", "*b", "?b", "contains a", "contains bb", "*abc*def*"]
if regexes.ARE_THERE:
    VALUES += ["~a.c", "~^b", "~(a|b)b", "~ab+c"]
TEXTS = ["", "a", "b", "ab", "bb", "c", "zabz", "xx abc y def z ghi", "a" * 30 + "bc"]
SUBJECTS = ["header A", "header B", "cookie c", "parameter p", "query", "path contains"]


def conditions(draw, subject):
    """Returns one or two conditions, one of them on the subject."""
    texts = []
    for which in [subject] + [draw.choice(["header C", "cookie d"])] * (draw.random() < 0.2):
        value = draw.choice(["a", "c", "a/b", "b/a"]) if which.startswith("path") else '""' if draw.random() < 0.02 else draw.choice(VALUES)
        texts.append(f"{'not ' if draw.random() < 0.02 else ''}{which} {value}")
    return " ".join(draw.sample(texts, len(texts)))


def rules(draw):
    """Returns the conditions of rules. Consecutive rules often have the same subject."""
    subject, texts = draw.choice(SUBJECTS), []
    for _ in range(RULES):
        subject = subject if draw.random() < 0.85 else draw.choice(SUBJECTS)
        texts.append(conditions(draw, subject))
    return texts


def security(draw, texts):
    keys = [f"{draw.choice(['Allow', 'Deny'])} {text}" for text in texts]
    return "[SECURITY]\n", keys, "Deny method NEVER"


def challenge(draw, texts):
    keys = [f"{draw.choice(['Allow', 'Challenge'])} {text}" for text in texts]
    return "[CHALLENGE]\n", keys, "Challenge method NEVER"


def rewrite(draw, texts):
    """The gateway rejects a path that a rule might match as the backend interprets it: 400 instead of 502."""
    patterns = ["prefix /", "prefix /a", "glob *b*", "prefix /a/b"]
    keys = [f"When {text}\n    Redirect 302 {draw.choice(patterns)} /r{i}" for i, text in enumerate(texts)]
    return "[ROUTES]\n    /* scgi unix:/nonexistent/socket\n[REWRITE]\n", keys, "Redirect 302 prefix /never /r"


def routes(draw, texts):
    patterns = ["/*"] * 4 + ["/a*", "*b*", "/a/b*"] + ["~^/a"] * regexes.ARE_THERE
    keys = [f"When {text}\n    {draw.choice(patterns)} redirect 302 /r{i}" for i, text in enumerate(texts)]
    return "[ROUTES]\n", keys, "/never status 410"


def limits(draw, texts):
    """The burst of a rule tells which rules apply."""
    keys = [f"Except when {text} cookie d *b*" if i % 6 == 5 else f"Requests 10/d burst {draw.randint(1, 5)} by path when {text}" for i, text in enumerate(texts)]
    return "[LIMITS]\n", keys, "Requests /never 10/d\n    Except when method NEVER"


def request(draw, at):
    """Returns a target, which no other request has, and headers."""
    fields = [(draw.choice("AaBC"), draw.choice(TEXTS)) for _ in range(draw.randrange(3))]
    if draw.random() < 0.5:
        fields.append(("Cookie", f"c={draw.choice(TEXTS)}; d={draw.choice(TEXTS)}"))
    path = draw.choice(["/", "/a", "/b", "/a;x/b", "/b;x/a", "/a/b", "/c"])
    return f"{path}{at}?p={draw.choice(TEXTS[:6])}&p={draw.choice(TEXTS[:6])}", fields


def outcome(server, target, fields, repeats):
    replies = [server.get(target, fields=fields) for _ in range(repeats)]
    return [(reply.status, reply.get("Location")) for reply in replies]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("section,plugins,repeats", [
    (security, ["security"], 1), (challenge, ["challenge"], 1), (rewrite, ["rewrite", "scgi"], 1), (routes, [], 1),
    (limits, ["limits"], 6),
], ids=lambda value: getattr(value, "__name__", ""))
def test_rules_with_an_index_decide_like_rules_without(monkey, site, section, plugins, repeats, seed):
    draw = random.Random(f"{section.__name__} {seed}")
    head, keys, impossible = section(draw, rules(draw))
    text = head + "".join(f"    {key}\n" for key in keys)
    plain = head + "".join(f"    {key}\n    {impossible}\n" for key in keys)
    site.add("index.html", "index")
    indexed, other = (monkey(plugins=plugins, sections=sections) for sections in (text, plain))
    seen = set()
    for at in range(REQUESTS):
        target, fields = request(draw, at)
        results = outcome(indexed, target, fields, repeats)
        assert results == outcome(other, target, fields, repeats), (target, fields)
        seen.update(results)
    assert len(seen) > 1


def test_index_of_rewrites_covers_interpretations_of_the_path(monkey):
    """The gateway rejects a path to which the backend might apply a rule."""
    rules = "".join(f"    When path contains {part}\n    Redirect 302 prefix / /r\n" for part in ("x/y", "b/a", "c/d"))
    server = monkey(plugins=["rewrite", "scgi"], sections=rewrite(random, [])[0] + rules)
    assert server.get("/b/a").status == 302
    assert server.get("/b;x/a").status == 400 and server.get("/b/c").status == 502
