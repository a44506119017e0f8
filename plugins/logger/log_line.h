/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a log line. No client text can end a line, close a quote or reach a terminal unescaped. */
#ifndef LOGGER_LOG_LINE_H
#define LOGGER_LOG_LINE_H

#include <monkey/access_record.h>
#include <monkey/buf.h>

enum {
    LOGGER_LINE_MAX = 16000, /* the server writes blocks of 16 KB: a line must fit into one */
    LOGGER_TEXT_MAX =
        768, /* of each text that a client sent, escaped; the server's own log has the same limits */
    LOGGER_USER_MAX = 192,
    LOGGER_WORD_MAX = 64, /* of everything else */
};

enum time_form { AS_CLF, AS_CLF_BRACKETS, AS_ISO, AS_UTC, AS_DAY, AS_OF_DAY, AS_SECONDS, TIME_FORMS };

/* The clock as text, written once a second. Of a worker. */
struct clock {
    struct clock_text {
        int64_t time;
        size_t len;
        char text[LOGGER_WORD_MAX];
    } as[TIME_FORMS];
    int64_t pid;
};

struct line {
    struct mk_buf out;
    const struct mk_access_record *record;
    const struct mk_request *request;
    struct clock *clock;
    bool json;
};

/* What needs no escapes: the server's own words. The room was made for the longest line there can be. */
static inline void logger_line_append(struct line *line, mk_str text)
{
    struct mk_buf *out = &line->out;
    if (out->cap - out->len < text.len) {
        out->failed = true;
        return;
    }
    memcpy(out->p + out->len, text.p, text.len);
    out->len += text.len;
}

struct step;
typedef void logger_step_fn(struct line *line, const struct step *step);

struct step {
    logger_step_fn *write; /* NULL: `text` as it is */
    mk_str text;           /* that, or the name of a field */
    unsigned how;          /* what the verb is to know besides */
    bool keeps_blanks;     /* no parser takes a blank for the end of the value */
};

/* A letter of a format, with one of the words that its braces may contain. */
struct directive {
    char letter;
    const char *word;      /* NULL: no braces. "": the name of a field */
    bool is_bare;          /* needs no quotes in JSON: a number */
    unsigned how;          /* for the step */
    size_t max;            /* bytes that it writes at most */
    logger_step_fn *write; /* NULL: nothing but a percent sign */
};

extern const struct directive logger_directives[];
extern const size_t logger_n_directives;

/* The time in that form. */
mk_str logger_clock_text(struct clock *clock, enum time_form form, int64_t time);

#endif
