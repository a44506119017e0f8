# SPDX-License-Identifier: Apache-2.0
"""DUDA_TOPIC(): errors of definitions, which the compiler or the server reports, and definitions in several services and
source files."""
import subprocess

import pytest

import services
from monkey import ROOT
from services import COMPILER, FLAGS

pytestmark = pytest.mark.skipif(not services.BUILT.exists(), reason="this build has no Duda")

SERVICE = """
#include <duda.h>
#include <duda/topic.h>
%s
static int publish(struct duda_ctx *d)
{
    %s
}
DUDA_SERVICE(%s, DUDA_POST("/%s", publish, ""));
"""


def build(folder, topics, name="alpha", body="(void)d;\n    return 0;"):
    return services.build(folder, name, SERVICE % (topics, body, name, name))


def check(run, tmp_path, *objects, duda=""):
    conf = tmp_path / "monkey.conf"
    conf.write_text("[SERVER]\n    Listen 127.0.0.1:0\n[PLUGINS]\n    Load duda\n" + "".join(f"    Load {each}\n" for each in objects)
                    + f"[DUDA]\n{duda}\n[HOST]\n    DocumentRoot .\n")
    return run("-t", "-c", conf)


@pytest.mark.parametrize("topics, error", [
    ('DUDA_TOPIC(a, "");', "a name has 1 to 64 bytes"),
    (f'DUDA_TOPIC(a, "{"x" * 65}");', "a name has 1 to 64 bytes"),
    (f'DUDA_TOPIC_FAMILY(a, "{"x" * 65}");', "a name has 1 to 64 bytes"),
    ('DUDA_TOPIC(a, "a", .keep_s = 5);', "`.keep_s` has no effect without `.keep`"),
    ('DUDA_TOPIC(a, "a", .keep = 1, .keep_s = 315360001);', "`.keep_s` is at most 315360000 (ten years)"),
    ('DUDA_TOPIC(a, "a", .kind = (enum mk_websocket_kind)3);', "`.kind` must be MK_WEBSOCKET_TEXT or MK_WEBSOCKET_BINARY"),
    ('DUDA_TOPIC(a, "news");\nDUDA_TOPIC(b, "news");', "is also defined in"),
    ('DUDA_TOPIC(a, "room/lobby");\nDUDA_TOPIC_FAMILY(b, "room/");', "is also defined in"),
    ('DUDA_TOPIC_FAMILY(a, "room/");\nDUDA_TOPIC_FAMILY(b, "room/x");', "is also defined in"),
])
def test_invalid_definition_is_reported_when_the_service_is_loaded(run, tmp_path, topics, error):
    done = check(run, tmp_path, build(tmp_path, topics))
    assert done.code != 0 and "the topic `" in done.err and "alpha.c:4" in done.err and error in done.err, done.err


def test_different_topics_are_valid(run, tmp_path):
    topics = 'DUDA_TOPIC(a, "room");\nDUDA_TOPIC_FAMILY(b, "room/", .keep = 3, .keep_s = DUDA_TOPIC_KEEP_S_MAX);\nDUDA_TOPIC(c, "rooms", .kind = MK_WEBSOCKET_BINARY);'
    done = check(run, tmp_path, build(tmp_path, topics))
    assert done.code == 0, done.err


@pytest.mark.parametrize("other, is_valid", [
    ('DUDA_TOPIC(b, "news", .keep = 5);', True),
    ('DUDA_TOPIC(b, "news", .keep = 5, .kind = MK_WEBSOCKET_TEXT);', True),
    ('DUDA_TOPIC(b, "newspaper");', True),
    ('DUDA_TOPIC(b, "news", .keep = 6);', False),
    ('DUDA_TOPIC(b, "news", .keep = 5, .keep_s = 1);', False),
    ('DUDA_TOPIC(b, "news", .keep = 5, .kind = MK_WEBSOCKET_BINARY);', False),
    ('DUDA_TOPIC_FAMILY(b, "ne", .keep = 5);', False),
])
def test_services_that_share_a_topic_define_it_equally(run, tmp_path, other, is_valid):
    objects = build(tmp_path, 'DUDA_TOPIC(a, "news", .keep = 5);'), build(tmp_path, other, "beta")
    done = check(run, tmp_path, *objects, duda="    Share both alpha beta")
    if is_valid:
        assert done.code == 0, done.err
    else:
        assert done.code != 0 and "has other options than `news` of the service `alpha`" in done.err, done.err
    assert check(run, tmp_path, *objects).code == 0, "without the Share, each service has its own topic"


def test_two_source_files_use_one_topic(monkey, tmp_path):
    (tmp_path / "topics.h").write_text("#include <duda.h>\n#include <duda/topic.h>\nDUDA_TOPIC_DECLARE(news);\n"
                                       "DUDA_TOPIC_FAMILY_DECLARE(rooms);\nint publish_there(struct duda_ctx *d);\n")
    (tmp_path / "other.c").write_text('#include "topics.h"\nint publish_there(struct duda_ctx *d)\n{\n'
                                      '    struct duda_topic room = duda_topic_named(&rooms, MK_STR("a"));\n'
                                      '    int e = duda_topic_publish(d, &room, MK_STR("hello"));\n'
                                      '    return e ? e : duda_topic_publish(d, &news, MK_STR("hello"));\n}\n')
    service = services.build(tmp_path, "alpha", '#include "topics.h"\nDUDA_TOPIC(news, "news");\nDUDA_TOPIC_FAMILY(rooms, "room/");\n'
                             'DUDA_SERVICE(alpha, DUDA_POST("/", publish_there, ""));\n', f"-I{tmp_path}", tmp_path / "other.c")
    assert monkey(plugins=[service]).get("/", "POST").status == 204


@pytest.mark.parametrize("body, error", [
    ("return duda_topic_publish(d, &family, MK_STR(\"x\"));", "incompatible"),
    ("return duda_topic_publish(d, MK_STR(\"news\"), MK_STR(\"x\"));", "incompatible"),
    ("struct duda_topic t = duda_topic_named(&topic, MK_STR(\"x\")); return duda_topic_subscribe(d, &t);", "incompatible"),
])
def test_compiler_rejects_a_family_in_place_of_a_topic(tmp_path, body, error):
    source = tmp_path / "a.c"
    source.write_text(SERVICE % ('DUDA_TOPIC(topic, "a");\nDUDA_TOPIC_FAMILY(family, "b/");', body, "alpha", "a"))
    done = subprocess.run([COMPILER, *FLAGS, "-c", "-o", "/dev/null", source], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and error in done.stderr, done.stderr


def test_topics_work_in_cpp(tmp_path):
    source = tmp_path / "a.cpp"
    source.write_text((SERVICE % ('DUDA_TOPIC(topic, "a", .keep = 5);\nDUDA_TOPIC_FAMILY(family, "b/", .kind = MK_WEBSOCKET_BINARY);',
                                  'duda_topic t = duda_topic_named(&family, MK_STR("x"));\n    return duda_topic_publish(d, &t, MK_STR("x")) + duda_topic_subscribe(d, &topic);', "alpha", "a")))
    done = subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fPIC", f"-I{ROOT / 'include'}", f"-I{ROOT / 'duda' / 'include'}",
                           "-c", "-o", "/dev/null", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
