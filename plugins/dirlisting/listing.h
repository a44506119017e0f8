/* SPDX-License-Identifier: Apache-2.0 */
/* A listing while it is sent to a client. */
#ifndef DIRLISTING_LISTING_H
#define DIRLISTING_LISTING_H

#include <monkey/body_source.h>
#include <monkey/config.h>
#include <monkey/request.h>

#include "entry_store.h"

enum theme { THEME_GUINEO, THEME_PLAIN };

struct settings {
    bool listing;
    unsigned theme, sort, order; /* enum theme, enum sort_key, 1: descending */
    uint32_t sort_max;
    size_t sort_memory;
    struct mk_conf_words hide;
    unsigned upload; /* enum upload_mode */
    bool overwrite;
    uint64_t upload_max;
};

/* The options that the client has requested. */
struct listing_options {
    const struct format *format;
    bool has_format_query; /* the query names the format */
    enum sort_key sort;
    bool down;
    bool has_form; /* the page has a form for uploads */
    mk_str note;   /* an error for the user; empty: none */
};

enum step { STEP_COLLECT, STEP_SORT, STEP_HEAD, STEP_ENTRIES, STEP_FOOT, STEP_END };

struct listing {
    struct mk_request *request;
    struct mk_worker *worker;
    const struct settings *settings;
    size_t *shared; /* memory used for the entries of all listings of this worker */
    mk_str path;    /* ends with '/' */
    struct listing_options options;
    enum step step;
    bool running;        /* a thread uses folder and store */
    bool closed;         /* the request has ended */
    bool is_large;       /* the folder is too large to be sorted */
    unsigned n_resolved; /* number of links that this read has resolved */
    int error;
    size_t at;                     /* index of the next entry, in the folder's block or in the store */
    uint64_t n_shown, bytes_shown; /* number of entries shown, and total size of the files */
    struct mk_buf out;
    size_t sent; /* bytes of `out` that were sent */
    struct store store;
    struct folder folder;
};

/* A format of listings. */
struct format {
    const char *word; /* value of the query parameter `format` */
    mk_str type;
    mk_str content_type;
    void (*write_head)(const struct listing *l, struct mk_buf *out);
    void (*entry)(const struct listing *l, const struct entry *e, struct mk_buf *out);
    void (*write_foot)(const struct listing *l, struct mk_buf *out);
};

extern const struct format dirlisting_format_html, dirlisting_format_json, dirlisting_format_text;
extern const mk_str dirlisting_theme_guineo, dirlisting_theme_plain; /* style sheets */
extern const char *const dirlisting_sort_words[];

/* Returns the actual order of the entries. */
enum sort_key dirlisting_listing_sort_key(const struct listing *l);

extern const struct mk_body_source_ops dirlisting_source;
/* Takes ownership of `fd`, even if it returns NULL (out of memory). */
struct listing *dirlisting_listing_new(struct mk_request *request, int fd, const struct settings *settings,
                                       size_t *shared, const struct listing_options *options);

/* Writes "2026-01-31T12:00:00Z" or, for HTML, "2026-01-31<span> 12:00</span>"; nothing if the time does
 * not fit into a struct tm. */
void dirlisting_write_time(struct mk_buf *out, int64_t time, bool html);
/* Writes a name for display. Bytes that are not text, and characters that affect other text, become \xHH. */
void dirlisting_write_name(struct mk_buf *out, mk_str name, void (*write)(struct mk_buf *out, mk_str part));

#endif
