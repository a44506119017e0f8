/* SPDX-License-Identifier: Apache-2.0 */
/* Each type of RESP2 and RESP3 is parsed in pieces of any length; malformed replies are rejected. */
#include <errno.h>
#include <redis/reply_parser.h>
#include <stdio.h>

#include "unit/packages/handler.h"
#include "unit/test.h"

enum { LIST_MAX = 1000 };

static struct redis_reply_parser parser;
static struct duda_redis_reply mine;

static void setup(void)
{
    parser = (struct redis_reply_parser){.list_max = LIST_MAX};
    redis_reply_parser_init(&parser);
}

static void teardown(void)
{
    redis_reply_parser_fini(&parser);
    pool_free();
}

static void show(struct mk_buf *out, const struct duda_redis_reply *r)
{
    static const char marks[] = {'_', '$', '+', ':', '*', '-'};
    mk_buf_add_char(out, marks[r->type]);
    if (r->type == DUDA_REDIS_NUMBER)
        mk_buf_add_int(out, r->number);
    if (r->type == DUDA_REDIS_LIST) {
        mk_buf_add_char(out, '[');
        for (size_t i = 0; i < r->n; i++)
            show(out, &r->items[i]);
        mk_buf_add_char(out, ']');
    }
    if (r->text.p) {
        assert_int_equal(r->text.p[r->text.len], 0);
        mk_buf_add(out, r->text);
        mk_buf_add_char(out, ' ');
    }
}

/* Returns all replies, one per line; the last line is the error, unless bytes are missing. */
static mk_str read_pieces(mk_str in, size_t piece, struct duda_ctx *d)
{
    static char buffer[4000];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    struct duda_redis_reply *reply;
    int e = -EAGAIN;
    for (; in.len && e == -EAGAIN; in = mk_str_skip(in, piece)) {
        assert_int_equal(redis_reply_parser_feed(&parser, mk_str_first(in, piece)), 0);
        for (;;) {
            parser.d = d;
            parser.to = &mine;
            e = redis_reply_parser_next(&parser, &reply);
            if (e)
                break;
            if (parser.is_push)
                mk_buf_add_char(&out, '>');
            show(&out, reply);
            mk_buf_add_char(&out, '\n');
        }
    }
    if (e != -EAGAIN)
        mk_buf_addf(&out, "%d", -e);
    assert_false(out.failed);
    return mk_buf_str(&out);
}

static void check(const char *in, const char *expected)
{
    mk_str bytes = mk_str_from_c(in);
    for (size_t piece = 1; piece <= bytes.len; piece++) {
        assert_str(read_pieces(bytes, piece, NULL), expected);
        redis_reply_parser_reset(&parser);
        assert_str(read_pieces(bytes, piece, HANDLER), expected);
        redis_reply_parser_reset(&parser);
    }
}

static void refused(const char *in, int error)
{
    char expected[20];
    snprintf(expected, sizeof expected, "%d", error);
    check(in, expected);
    assert_non_null(parser.error_text);
}

static void redis_reply_resp2_is_parsed(void **state)
{
    (void)state;
    check("+OK\r\n-ERR no\r\n:-12\r\n", "+OK \n-ERR no \n:-12\n");
    check("$5\r\na\r\nb \r\n$0\r\n\r\n$-1\r\n*-1\r\n", "$a\r\nb  \n$ \n_\n_\n");
    check("*0\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", "*[]\n*[:1*[$x ]]\n");
    check(":9223372036854775807\r\n:-9223372036854775808\r\n:+7\r\n",
          ":9223372036854775807\n:-9223372036854775808\n:7\n");
    check("+a\rb\r\n+\r\n", "+a\rb \n+ \n");
}

static void redis_reply_resp3_is_converted_to_resp2(void **state)
{
    (void)state;
    check("_\r\n#t\r\n#f\r\n", "_\n:1\n:0\n");
    check(",1.5\r\n,inf\r\n,-inf\r\n,nan\r\n,1e+20\r\n(-349\r\n",
          "$1.5 \n$inf \n$-inf \n$nan \n$1e+20 \n$-349 \n");
    check("=7\r\ntxt:a\r\n\r\n=4\r\nmkd:\r\n!5\r\nERR x\r\n", "$a\r\n \n$ \n-ERR x \n");
    check("%2\r\n+a\r\n:1\r\n+b\r\n~1\r\n_\r\n", "*[+a :1+b *[_]]\n");
    check("%0\r\n~0\r\n", "*[]\n*[]\n");
}

static void redis_reply_attributes_are_skipped(void **state)
{
    (void)state;
    check("|1\r\n+ttl\r\n:3\r\n+a\r\n+b\r\n", "+a \n+b \n");
    check("|0\r\n:1\r\n", ":1\n");
    check("*3\r\n:1\r\n|1\r\n+ttl\r\n*2\r\n:8\r\n:9\r\n:2\r\n:3\r\n", "*[:1:2:3]\n");
    check("|1\r\n|1\r\n+x\r\n+y\r\n+k\r\n|1\r\n+x\r\n+y\r\n%1\r\n$1\r\nv\r\n_\r\n*1\r\n:5\r\n", "*[:5]\n");
}

static void redis_reply_pushes_are_separate(void **state)
{
    (void)state;
    check(">2\r\n+invalidate\r\n*1\r\n+k\r\n:1\r\n", ">*[+invalidate *[+k ]]\n:1\n");
    check(":1\r\n>0\r\n|1\r\n+a\r\n+b\r\n>1\r\n:2\r\n:3\r\n", ":1\n>*[]\n>*[:2]\n:3\n");
    mine.number = 77;
    assert_str(read_pieces(MK_STR(">1\r\n:2\r\n"), 100, HANDLER), ">*[:2]\n");
    assert_int_equal(mine.number, 77); /* the waiting handler has no reply yet */
}

static void redis_reply_rejects_malformed(void **state)
{
    static const char *const wrong[] = {"x\r\n",          "HTTP/1.1 400\r\n",
                                        "\r\n",           ":\r\n",
                                        ":1x\r\n",        ":9223372036854775808\r\n",
                                        ":- 1\r\n",       "$-2\r\n",
                                        "$x\r\n",         "*-2\r\n",
                                        "%-1\r\n",        "~-1\r\n",
                                        "|-1\r\n",        ">-1\r\n",
                                        "=-1\r\n",        "!-1\r\n",
                                        "#\r\n",          "#x\r\n",
                                        "#tt\r\n",        "_x\r\n",
                                        ",\r\n",          ",1,5\r\n",
                                        ",0x1p\r\n",      "(\r\n",
                                        "(1.5\r\n",       "=3\r\ntxt\r\n",
                                        "=4\r\ntxt.\r\n", "$2\r\nabc\r\n",
                                        "$?\r\n",         "*?\r\n",
                                        "*1\r\n>1\r\n",   "|1\r\n>1\r\n",
                                        ";1\r\n",         "$4611686018427387904\r\n"};
    (void)state;
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        refused(wrong[i], EPROTO);
    refused(":-9223372036854775809\r\n", EPROTO);
}

static void redis_reply_lists_are_limited(void **state)
{
    (void)state;
    refused("*1001\r\n", EMSGSIZE);
    refused("%501\r\n", EMSGSIZE);
    refused("*1\r\n*1000\r\n", EMSGSIZE);
    refused("|501\r\n", EMSGSIZE);
    refused("*2147483647\r\n", EMSGSIZE);
    check("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:"
          "1\r\n",
          "*[*[*[*[*[*[*[*[*[*[*[*[*[*[*[*[:1]]]]]]]]]]]]]]]]\n");
    refused("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*"
            "1\r\n*1\r\n:1\r\n",
            EPROTO);
    /* The element count does not carry over to the next reply. */
    for (int i = 0; i < 3; i++)
        assert_str(read_pieces(MK_STR("*2\r\n:1\r\n:2\r\n"), 100, NULL), "*[:1:2]\n");
}

static void redis_reply_oom_fails_only_that_handler(void **state)
{
    struct duda_redis_reply *reply;
    (void)state;
    for (size_t left = 0; left < 3; left++) {
        const mk_str in = MK_STR("*1\r\n+long\r\n+b\r\n:4\r\n");
        assert_int_equal(redis_reply_parser_feed(&parser, in), 0);
        parser.d = HANDLER;
        parser.to = &mine;
        pool_left = left;
        assert_int_equal(redis_reply_parser_next(&parser, &reply), 0);
        assert_int_equal(parser.is_out_of_memory, left < 2);
        assert_int_equal(redis_reply_parser_next(&parser, &reply), 0);
        assert_int_equal(parser.is_out_of_memory, left < 3);
        assert_int_equal(redis_reply_parser_next(&parser, &reply), 0);
        assert_int_equal(reply->number, 4);
        pool_free();
    }
}

static void redis_reply_errors_map_to_codes(void **state)
{
    static const struct {
        const char *text;
        int error;
    } all[] = {{"OOM command not allowed", -ENOSPC},
               {"MISCONF x", -ENOSPC},
               {"LOADING x", -EAGAIN},
               {"BUSY x", -EAGAIN},
               {"MASTERDOWN x", -EAGAIN},
               {"TRYAGAIN x", -EAGAIN},
               {"CLUSTERDOWN x", -EAGAIN},
               {"NOREPLICAS x", -EAGAIN},
               {"NOAUTH x", -ENOKEY},
               {"ERR x", -EREMOTEIO},
               {"BUSYGROUP x", -EREMOTEIO},
               {"", -EREMOTEIO}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(all); i++)
        assert_int_equal(redis_reply_errno(&(struct duda_redis_reply){.text = mk_str_from_c(all[i].text)}),
                         all[i].error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(redis_reply_resp2_is_parsed, setup, teardown),
        fixture_test(redis_reply_resp3_is_converted_to_resp2, setup, teardown),
        fixture_test(redis_reply_attributes_are_skipped, setup, teardown),
        fixture_test(redis_reply_pushes_are_separate, setup, teardown),
        fixture_test(redis_reply_rejects_malformed, setup, teardown),
        fixture_test(redis_reply_lists_are_limited, setup, teardown),
        fixture_test(redis_reply_oom_fails_only_that_handler, setup, teardown),
        cmocka_unit_test(redis_reply_errors_map_to_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
