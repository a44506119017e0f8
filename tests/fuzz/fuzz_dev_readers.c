/* SPDX-License-Identifier: Apache-2.0 */
/* The parsers of duda-dev: sources, make rules, compiler messages, crash reports, patterns, names. */
#include "crash.h"
#include "error_page.h"
#include "inputs.h"
#include "introspect.h"
#include "server_config.h"
#include "symbolize.h"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 20 };

static bool is_within(mk_str part, mk_str all)
{
    return !part.len || (part.p >= all.p && part.p + part.len <= all.p + all.len);
}

static void check_source(mk_str text)
{
    struct dev_source s = {.text = mk_buf_growing(TEXT_MAX),
                           .packages = mk_buf_growing(TEXT_MAX),
                           .flags = mk_buf_growing(TEXT_MAX)};
    mk_buf_add(&s.text, text);
    dev_source_parse(&s, mk_str_first(text, 80));
    MK_ASSERT(s.name[0] && strlen(s.name) < DEV_NAME_MAX);
    dev_source_free(&s);
}

static void check_rule(mk_str text)
{
    struct mk_buf files = mk_buf_growing(TEXT_MAX);
    dev_inputs_parse_depfile(text, "/cache", &files);
    MK_ASSERT(files.len <= text.len + 1 && (!files.len || files.p[files.len - 1] == '\n'));
    mk_buf_free(&files);
}

static void check_lines(mk_str text)
{
    while (text.p) {
        mk_str line = mk_str_cut(&text, '\n'), path, what;
        uint64_t row, column;
        struct dev_frame f;
        if (dev_error_page_parse_message(line, &path, &row, &column, &what))
            MK_ASSERT(path.len && is_within(path, line) && is_within(what, line));
        if (dev_symbolize_parse_frame(line, &f))
            MK_ASSERT(is_within(f.object, line) && is_within(f.symbol, line));
        if (dev_symbolize_parse_location(line, &path, &row))
            MK_ASSERT(row > 0 && is_within(path, line));
        (void)dev_server_config_allows_host(line, line);
    }
}

static void check_page(mk_str text)
{
    struct mk_buf out = mk_buf_growing(8 * TEXT_MAX);
    const struct dev_error_page html = {.out = &out, .html = true};
    dev_error_page_add_text(&html, text);
    dev_symbolize_write_cause(&out, text);
    mk_str inner = mk_str_skip(mk_buf_str(&out), strlen("<pre><span>"));
    size_t tag = mk_str_find(inner, '<'); /* the first tag is our closing tag */
    MK_ASSERT(tag != MK_STR_NONE && mk_str_starts(mk_str_skip(inner, tag), MK_STR("</span>")));
    mk_buf_free(&out);
}

static void check_pattern(mk_str pattern)
{
    mk_str rest = pattern, text;
    struct dev_param p;
    while (dev_introspect_next_segment(&rest, &text, &p))
        MK_ASSERT(is_within(text, pattern) && is_within(p.name, text) && rest.len < pattern.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size);
    check_source(text);
    check_rule(text);
    check_lines(text);
    check_page(text);
    check_pattern(text);
    return 0;
}
