/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_extension.h"

#include "unit/test.h"

/* Returns the response to an offer; empty if none is accepted. */
static const char *negotiate(const char *offer, bool keeps)
{
    static char buffer[MK_WS_EXTENSION_TEXT_MAX];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer - 1);
    struct mk_ws_extension o;
    if (mk_ws_extension_negotiate(mk_str_from_c(offer), keeps, &o))
        mk_ws_extension_format(&o, &out);
    assert_false(out.failed);
    buffer[out.len] = 0;
    return buffer;
}

#define D       "permessage-deflate"
#define FORGETS "; server_no_context_takeover; client_no_context_takeover"

static void ws_extension_offer_is_negotiated(void **state)
{
    (void)state;
    assert_string_equal(negotiate(D, true), D);
    assert_string_equal(negotiate(D, false), D FORGETS);
    assert_string_equal(negotiate(D "; client_max_window_bits", true), D);
    assert_string_equal(negotiate(D "; client_max_window_bits=9", true), D);
    assert_string_equal(negotiate(D ";server_max_window_bits=\"9\"", true), D "; server_max_window_bits=9");
    assert_string_equal(negotiate(D " ; server_max_window_bits = 15", true), D);
    assert_string_equal(negotiate(D FORGETS "; server_max_window_bits=10; client_max_window_bits", true),
                        D FORGETS "; server_max_window_bits=10");
}

static void ws_extension_first_acceptable_offer_is_used(void **state)
{
    (void)state;
    assert_string_equal(
        negotiate("x, " D "; server_max_window_bits=8, " D "; server_no_context_takeover, " D, true),
        D "; server_no_context_takeover");
}

static void ws_extension_rejects_malformed_offers(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "x",
        "permessage",
        D "x",
        D "; x",
        D ";",
        D "; server_no_context_takeover=1",
        D "; server_max_window_bits",
        D "; server_max_window_bits=",
        D "; server_max_window_bits=16",
        D "; server_max_window_bits=7",
        D "; server_max_window_bits=8",
        D "; server_max_window_bits=010",
        D "; server_max_window_bits=\"",
        D "; server_max_window_bits=1000000000000000000000",
        D "; client_max_window_bits=x",
        D "; server_no_context_takeover; server_no_context_takeover",
    };
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        assert_string_equal(negotiate(wrong[i], true), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ws_extension_offer_is_negotiated),
        cmocka_unit_test(ws_extension_first_acceptable_offer_is_used),
        cmocka_unit_test(ws_extension_rejects_malformed_offers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
