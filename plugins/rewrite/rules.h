/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a host, as the configuration says them. */
#ifndef REWRITE_RULES_H
#define REWRITE_RULES_H

#include <monkey/plugin.h>

enum kind { KIND_PREFIX, KIND_GLOB, KIND_REGEX, KINDS };

/* Where a request is sent: text, and what is put in between. */
struct piece {
    mk_str text;      /* absent: a capture, or the host */
    unsigned capture; /* its number */
    bool is_host;
    bool follows_slash; /* within a path, behind a `/`: it must not add another one */
};

struct target {
    struct piece *pieces;
    size_t n;
    size_t query;    /* the piece that begins with `?`; n if there is none */
    size_t fragment; /* the piece that begins with `#`; n if there is none */
    bool is_url;     /* with a scheme and a host, else a path */
};

enum subject { SUBJECT_HOST, SUBJECT_METHOD, SUBJECT_SCHEME, SUBJECT_QUERY, SUBJECT_FILE, SUBJECTS };

struct condition {
    enum subject subject;
    bool negated;
    mk_str *words; /* one of them is enough */
    size_t n;
    struct condition *next;
};

struct rule {
    unsigned status; /* of a redirect; 0: a rewrite */
    enum kind kind;
    mk_str pattern;
    bool nocase, drop_query, last;
    struct mk_regex *regex; /* made when the rules are taken; NULL for other kinds */
    struct target target;
    struct condition *conditions; /* all of them must hold */
    bool looks_first;  /* it looks at the disk, and a redirect here or below would tell what is there */
    mk_str key, value; /* as written */
    struct rule *next;
};

/* A line as it was written. */
struct line {
    mk_str key, value;
    struct line *next;
};

/* A [REWRITE]. */
struct rules {
    struct rule *first, **end;
    struct line *lines, **lines_end;
    struct condition *pending; /* of the rule that is to come */
};

extern const struct mk_conf_table rewrite_rules_table;

/* target.c: reads a target; what is wrong is reported. `regex` tells what its captures are called (NULL:
 * none). */
bool rewrite_target_parse(const struct mk_conf_ctx *spot, mk_str text, struct rule *rule,
                          const struct mk_regex *regex);
/* Writes the path and query that the request has now. */
void rewrite_target_print_current(const struct mk_request *request, struct mk_buf *out);
/* Writes it for a request. False: it cannot be, as there is no host to put in. */
bool rewrite_target_expand(const struct rule *rule, const struct mk_request *request,
                           const struct mk_regex_captures *found, struct mk_buf *out);

/* match.c: does the rule want this request? *why is NULL unless the search was given up: then the
 * rule does not match. */
bool rewrite_rule_matches(const struct rule *rule, const struct mk_request *request,
                          struct mk_regex_captures *out, const char **why);
/* Would it match if the path were one of the variants? */
bool rewrite_rule_may_match_variants(const struct rule *rule, const struct mk_request *request,
                                     const mk_str *variants, size_t n);
/* Has it a condition that looks at the disk? */
bool rewrite_rule_checks_files(const struct rule *rule);

#endif
