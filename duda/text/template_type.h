/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled template: a list of nodes. */
#ifndef DUDA_TEXT_TEMPLATE_TYPE_H
#define DUDA_TEXT_TEMPLATE_TYPE_H

#include <duda/template.h>

enum duda_template_node_kind {
    DUDA_NODE_TEXT,
    DUDA_NODE_VALUE,
    DUDA_NODE_UNESCAPED,
    DUDA_NODE_SECTION,
    DUDA_NODE_INVERTED,
    DUDA_NODE_PARTIAL,
    DUDA_NODE_FILTERED,           /* a value with filters */
    DUDA_NODE_FILTERED_UNESCAPED, /* the same, unescaped */
    DUDA_NODE_URL,                /* the URL of a route */
    DUDA_NODE_URL_UNESCAPED,
    DUDA_NODE_ELSE,   /* separates the two branches of a section */
    DUDA_NODE_PARENT, /* contains the blocks that replace those of the parent */
    DUDA_NODE_BLOCK
};

enum duda_template_filter {
    DUDA_FILTER_ASSET,
    DUDA_FILTER_DATE,
    DUDA_FILTER_DEFAULT,
    DUDA_FILTER_JSON,
    DUDA_FILTER_LOWER,
    DUDA_FILTER_NUMBER,
    DUDA_FILTER_TRUNCATE,
    DUDA_FILTER_UPPER,
    DUDA_FILTER_URL
};

enum { DUDA_TEMPLATE_CALLS_MAX = 8 };   /* filters of one tag */
enum { DUDA_TEMPLATE_PARAMS_MAX = 16 }; /* parameters of one URL */

struct duda_template_call {
    enum duda_template_filter filter;
    unsigned n_args;
    mk_str args[2];
};

/* How to look up a name: determined once, when the template is compiled. */
enum duda_template_lookup {
    DUDA_LOOKUP_MEMBER,
    DUDA_LOOKUP_PATH,   /* with dots */
    DUDA_LOOKUP_SELF,   /* `.` */
    DUDA_LOOKUP_LOOP,   /* `@index` and so on */
    DUDA_LOOKUP_GLOBAL, /* any other name that begins with `@` */
};

/* A parameter of `{{url_for "name" id=issue.id}}`. */
struct duda_template_param {
    const char *name;
    mk_str value; /* text, or the name of a value */
    enum duda_template_lookup lookup;
    bool is_literal; /* `value` is the text */
};

struct duda_template_node {
    enum duda_template_node_kind kind;
    enum duda_template_lookup lookup;
    bool alone;      /* a partial or parent alone on its line */
    bool is_literal; /* a value with filters: `text` is the value, not its name */
    mk_str text;     /* text, or the name in a tag */
    union {
        mk_str indent;  /* white space before that partial, or before a parent that begins its line */
        size_t else_at; /* for a section: index of DUDA_NODE_ELSE; 0: none */
        struct {
            size_t first, n;
        } calls; /* for a value with filters: its calls in struct duda_template */
        struct {
            size_t first, n;
        } params; /* for a URL: its parameters in struct duda_template */
    };
    size_t end; /* for a section, parent or block: index of the node after its last inner node */
    size_t at;  /* offset of the tag in the source */
};

struct duda_template {
    char *name;
    bool escapes;  /* values, for HTML */
    mk_str source; /* all strings are slices of it */
    struct duda_template_node *nodes;
    size_t n, cap;
    struct duda_template_call *calls;
    size_t n_calls;
    struct duda_template_param *params;
    size_t n_params;
};

#endif
