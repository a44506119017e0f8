/* SPDX-License-Identifier: Apache-2.0 */
/* A page of `monkey top`: reads a recording, and writes the statistics as text or as JSON. */
#ifndef TOP_RECORDER_PAGE_H
#define TOP_RECORDER_PAGE_H

#include "options.h"
#include "stats.h"

enum { TOP_LAST_MS = 10000 }; /* the time that the statistics cover by default */

struct top_page {
    struct top_options options;
    enum top_view view;
    enum top_column sort;
    uint64_t limit; /* rows; 0: all */
    bool is_json;
    struct top_stats stats;
};

/* Setters of options; `ctx` is the page. */
bool top_page_set_view(void *ctx, mk_str value);
bool top_page_set_sort(void *ctx, mk_str value);
bool top_page_set_limit(void *ctx, mk_str value);
bool top_page_set_json(void *ctx, mk_str value);
/* The options that all pages have, for `own` of struct top_options. */
#define TOP_PAGE_OPTIONS                                                                                     \
    {"--by", "", true, top_page_set_view}, {"--sort", "", true, top_page_set_sort},                          \
        {"--limit", "-n", true, top_page_set_limit},                                                         \
    {                                                                                                        \
        "--json", "-j", false, top_page_set_json                                                             \
    }

const char *top_page_view_name(enum top_view view);
const char *top_page_column_name(enum top_column column);

/* Reads the recording. Returns NULL, or the reason of a failure. */
const char *top_page_read(struct top_page *p, const struct top_recording *from, bool *is_missing);
/* Appends the lines above the rows, and puts the rows in order. */
void top_page_append_head(struct top_page *p, struct mk_buf *out);
size_t top_page_count_lines(const struct top_page *p);
void top_page_append_line(const struct top_page *p, size_t i, struct mk_buf *out);
/* Appends one line, which is a JSON object. */
void top_page_append_json(struct top_page *p, struct mk_buf *out);
/* Appends the time of day. */
void top_page_append_time(struct mk_buf *out, uint64_t ms);

#endif
