/* SPDX-License-Identifier: Apache-2.0 */
/* Pagination of lists: page numbers, cursors, and links to the neighboring pages. */
#ifndef DUDA_PAGINATION_H
#define DUDA_PAGINATION_H

/* As in duda/schema.h: C++ compilers warn about the designated initializers of DUDA_PAGE_FIELDS(). */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/schema.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The `Link` headers (RFC 8288) of these functions contain the URL of the request with another page:
 * `Link: </items?q=tea&page=3>; rel="next"`. Scripts of other origins can read them only if the policy of
 * DUDA_CORS() has `.expose = "Link"`. */

/** A page of a list. */
struct duda_page {
    int64_t size;     /**< items on a page: set it to the default; duda_page_read() stores the size in use */
    int64_t size_max; /**< maximum size that clients may request; 0: clients cannot choose the size */
    int64_t number;   /**< out: the requested page, counted from 1 */
    int64_t offset;   /**< out: number of items before the page, for OFFSET of a SQL query */
    /** for duda_page_links(): number of items in the list, 0 for an empty list; -1: unknown, see `has_next`.
     * duda_page_read() changes 0 to -1, so set the number after that call. */
    int64_t total;
    bool has_next; /**< for duda_page_links(), if `total` is unknown: whether there is a next page */
};
/** Maximum page number, and maximum page size. */
enum { DUDA_PAGE_MAX = 1000000000 };

/**
 * Reads the query parameters `page`, by default 1, and `per_page`. Returns 0 on success. Return any other
 * result from the handler: the client gets problem details with status 400.
 *
 *     struct duda_page page = {.size = 20, .size_max = 100};
 *     int e = duda_page_read(d, &page);
 *     e = e ? e : find_items(d, page.size + 1, page.offset, &n_found); // LIMIT and OFFSET of a query
 *     if (e)
 *         return e;
 *     page.has_next = n_found > page.size; // the query has found one more item than the page shows
 *     e = duda_page_links(d, &page);
 */
MK_API duda_verdict duda_page_read_sized(struct duda_ctx *d, struct duda_page *page,
                                         size_t page_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE duda_verdict duda_page_read(struct duda_ctx *d, struct duda_page *page)
{
    return duda_page_read_sized(d, page, sizeof *page);
}
/** Adds a `Link` header with the relations `first`, `prev` and `next`, as far as these pages exist. If
 * `.total` is not negative, also adds the relation `last`, and the header `X-Total-Count`. Returns 0, -ENOMEM
 * or -EALREADY. */
MK_API int duda_page_links_sized(struct duda_ctx *d, const struct duda_page *page, size_t page_size);
static inline int duda_page_links(struct duda_ctx *d, const struct duda_page *page)
{
    return duda_page_links_sized(d, page, sizeof *page);
}

/** The values of the query parameters `page` and `per_page`; 0: absent. */
struct duda_page_parameters {
    int64_t page, per_page;
};
/** Documents these parameters for `monkey doc` and `monkey openapi`:
 * `DUDA_GET("/items", list, "Lists the items.", .query = &duda_page_query)`. */
MK_API extern const struct duda_schema duda_page_query;
/**
 * The parameters as members of your own struct, if the route has further query parameters.
 *
 *     struct search {
 *         mk_str q;
 *         int64_t page, per_page;
 *     };
 *     static const struct duda_schema_field search_fields[] = {
 *         DUDA_STRING(struct search, q, .optional = true), DUDA_PAGE_FIELDS(struct search)};
 *     static const struct duda_schema search_schema = DUDA_SCHEMA(struct search, search_fields);
 */
#define DUDA_PAGE_FIELDS(type)                                                                               \
    DUDA_INTEGER(type, page, .optional = true, DUDA_MINIMUM(1), DUDA_MAXIMUM(DUDA_PAGE_MAX)),                \
        DUDA_INTEGER(type, per_page, .optional = true, DUDA_MINIMUM(1), DUDA_MAXIMUM(DUDA_PAGE_MAX))

/**
 * Returns a cursor: a signed string that encodes a position in a list, such as the ID of the last item that
 * the client has received. Unlike pages with numbers, pages with cursors neither repeat nor skip items when
 * other items are added or removed, and the last page is found as quickly as the first.
 *
 *     mk_str after;
 *     int e = duda_cursor_read(d, "cursor", &after);
 *     e = e ? e : find_items_after(d, after, &last); // WHERE id > $1 ORDER BY id LIMIT 20
 *     if (e)
 *         return e;
 *     if (last.p) // there are more items
 *         e = duda_link_add(d, "next", duda_url_with_query(d, "cursor", duda_cursor_new(d, last)));
 *
 * Clients can decode a cursor, but not change it. A cursor is valid for the path of the request that it was
 * created in, and as long as the keys of signed cookies (`KeyFile` of [SESSIONS]) do not change. The position
 * has at most DUDA_CURSOR_MAX bytes. The cursor consists of letters, digits, `-` and `_`, and is valid until
 * the handler returns; it is absent if the position is too long, OpenSSL is missing, or memory is exhausted.
 */
MK_API mk_str duda_cursor_new(struct duda_ctx *d, mk_str position) MK_API_MUST_USE;
/** Maximum length of a position in bytes. */
enum { DUDA_CURSOR_MAX = 512 };
/** Reads a cursor from a query parameter. Returns 0 and sets *position, which is absent if the request has no
 * such parameter: the client then requests the first page. -EBADMSG, which becomes status 400: the cursor is
 * not valid for this path; the client must start again with the first page. Also returns -EOPNOTSUPP (OpenSSL
 * is missing) and -ENOMEM. */
MK_API int duda_cursor_read(struct duda_ctx *d, const char *parameter, mk_str *position) MK_API_MUST_USE;
/** The value of the query parameter `cursor`; absent: the client requests the first page. */
struct duda_cursor_parameters {
    mk_str cursor;
};
/** Documents the query parameter `cursor`: `.query = &duda_cursor_query`. For a parameter with another name,
 * define your own schema. */
MK_API extern const struct duda_schema duda_cursor_query;

/** Adds a `Link` header: `rel` is the relation, such as "next", and `url` the target. Returns 0; -EINVAL: the
 * URL is absent, or a character is invalid; -ENOMEM; or -EALREADY. */
MK_API int duda_link_add(struct duda_ctx *d, const char *rel, mk_str url);

#ifdef __cplusplus
}
#endif

#endif
