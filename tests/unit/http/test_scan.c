/* SPDX-License-Identifier: Apache-2.0 */
#include "http/scan.h"

#include "http/path.h"
#include "unit/test.h"

enum { ROOM = 40 };

static bool is_alnum(int c)
{
    return mk_char_is_alpha((char)c) || mk_char_is_digit((char)c);
}

static bool among(int c, const char *set)
{
    return c != 0 && strchr(set, c) != NULL;
}

/* An independent implementation of the grammar. */
static bool belongs(int c, unsigned class)
{
    bool visible = c > 0x20 && c < 0x7f, obs = c >= 0x80;
    switch (class) {
    case MK_SCAN_TOKEN:
        return is_alnum(c) || among(c, "!#$%&'*+-.^_`|~");
    case MK_SCAN_VALUE:
        return visible || obs || c == ' ' || c == '\t';
    case MK_SCAN_TARGET:
        return visible && c != '#';
    case MK_SCAN_LABEL:
        return is_alnum(c) || c == '-' || c == '_';
    case MK_SCAN_ETAG:
        return obs || (visible && c != '"');
    default:
        return obs || c == ' ' || c == '\t' || (visible && c != '"' && c != '\\');
    }
}

static void scan_classes_match_grammar(void **state)
{
    (void)state;
    for (unsigned class = 1; class <= MK_SCAN_QUOTED; class <<= 1)
        for (int c = 0; c < 256; c++)
            if (mk_scan_is((char)c, class) != belongs(c, class))
                fail_msg("class %#x, character %#x", class, (unsigned)c);
}

static void check_plain(const char *from, const char *path, const char *stop)
{
    mk_str all = mk_str_of(from, (size_t)(stop - from));
    size_t len = (size_t)(path - from);
    assert_true(mk_path_is_plain(mk_str_first(all, len)));
    assert_int_equal(len, mk_min(all.len, mk_str_find(all, '?')));
}

/* Tests a path in the middle of a request line, with every pair of bytes at every offset. */
static void scan_recognizes_plain_paths(void **state)
{
    (void)state;
    static const char odd[] = "/.%?#a";
    char buffer[3 * ROOM];
    const char *path;
    bool once = false;
    for (size_t len = 1; len < 2 * ROOM; len++)
        for (size_t at = 1; at + 1 < len; at++)
            for (size_t pair = 0; pair < 36; pair++) {
                memset(buffer, 'a', len);
                memset(buffer + len, ' ', sizeof buffer - len);
                buffer[0] = '/';
                buffer[at] = odd[pair / 6];
                buffer[at + 1] = odd[pair % 6];
                const char *stop = mk_scan_target(buffer, buffer + sizeof buffer, &path);
                if (path)
                    check_plain(buffer, path, stop);
                once |= path && *path == '?';
            }
    memset(buffer, 'a', sizeof buffer);
    (void)mk_scan_target(buffer, buffer + sizeof buffer, &path);
    assert_null(path); /* not a plain path */
#if defined __SSE2__ && defined __x86_64__
    assert_true(once);
#else
    assert_false(once);
#endif
}

/* Fills a buffer with one byte, and puts every byte at every offset: both scans must stop at the same one. */
static void scan_by_words_equals_scan_by_bytes(void **state)
{
    (void)state;
    const char *path;
    char buffer[ROOM];
    for (int before = 0; before < 256; before += 5)
        for (int c = 0; c < 256; c++)
            for (size_t at = 0; at < ROOM; at++) {
                memset(buffer, before, sizeof buffer);
                buffer[at] = (char)c;
                const char *end = buffer + ROOM;
                assert_ptr_equal(mk_scan_value(buffer, end), mk_scan_skip(buffer, end, MK_SCAN_VALUE));
                const char *stop = mk_scan_target(buffer, end, &path);
                assert_ptr_equal(stop, mk_scan_skip(buffer, end, MK_SCAN_TARGET));
                if (path)
                    check_plain(buffer, path, stop);
                const char *found = memchr(buffer, c, ROOM);
                assert_ptr_equal(mk_scan_find(buffer, end, (char)c), found);
            }
}

/* Puts every byte at every offset of texts of all lengths, between bytes that are not in names. */
static void scan_recognizes_names(void **state)
{
    (void)state;
    static const char fill[] = "aZ0-z9A";
    char buffer[ROOM + 2];
    bool once = false;
    for (size_t len = 0; len < ROOM; len++)
        for (int c = 0; c < 256; c++)
            for (size_t at = 0; at < mk_max(len, 1u); at++) {
                memset(buffer, ':', sizeof buffer);
                for (size_t i = 0; i < len; i++)
                    buffer[1 + i] = i == at ? (char)c : fill[i % (sizeof fill - 1)];
                bool is_name = mk_scan_is_name(mk_str_of(buffer + 1, len));
                if (is_name && !is_alnum(c) && c != '-')
                    fail_msg("character %#x at %zu of %zu", (unsigned)c, at, len);
                once |= is_name;
#if defined __SSE2__ && defined __x86_64__
                assert_int_equal(is_name, len >= 8 && (is_alnum(c) || c == '-'));
#endif
            }
#if defined __SSE2__ && defined __x86_64__
    assert_true(once);
#else
    assert_false(once);
#endif
}

static void scan_does_not_read_beyond_end(void **state)
{
    (void)state;
    const char *path;
    for (size_t len = 0; len < ROOM; len++) {
        char *exact = test_malloc(len + 1);
        memset(exact, 'a', len);
        assert_ptr_equal(mk_scan_value(exact, exact + len), exact + len);
        assert_ptr_equal(mk_scan_target(exact, exact + len, &path), exact + len);
        assert_ptr_equal(mk_scan_find(exact, exact + len, ':'), exact + len);
        (void)mk_scan_is_name(mk_str_of(exact, len));
        test_free(exact);
    }
    assert_true(mk_scan_all(MK_STR_NULL, MK_SCAN_TOKEN));
}

/* Puts every byte at every offset within a word and after it. */
static void scan_finds_capitals_at_any_offset(void **state)
{
    (void)state;
    char text[ROOM];
    for (size_t len = 1; len <= 17; len++) {
        memset(text, 'a', sizeof text);
        text[len] = 'X'; /* ignored, because it is beyond the length */
        for (size_t at = 0; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                text[at] = (char)c;
                assert_int_equal(mk_scan_has_capitals(mk_str_of(text, len)), c >= 'A' && c <= 'Z');
            }
            text[at] = (char)(at % 2 ? 0xff : '-');
        }
    }
    assert_false(mk_scan_has_capitals(mk_str_of(text, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_classes_match_grammar),
        cmocka_unit_test(scan_recognizes_plain_paths),
        cmocka_unit_test(scan_by_words_equals_scan_by_bytes),
        cmocka_unit_test(scan_does_not_read_beyond_end),
        cmocka_unit_test(scan_recognizes_names),
        cmocka_unit_test(scan_finds_capitals_at_any_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
