/* SPDX-License-Identifier: Apache-2.0 */
/* Incremental parser for multipart/form-data (RFC 7578), the format of file uploads. */
#ifndef DUDA_MULTIPART_H
#define DUDA_MULTIPART_H

#include <duda/allocator.h>
#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The headers of a part. The strings are valid during the callback and not NUL-terminated. */
struct duda_part {
    mk_str name;
    /** The file name that the client sent, in `filename` or `filename*`. Do not trust it, and never use it as
     * a path. Absent: the part is not a file. */
    mk_str file_name;
    mk_str content_type; /**< media type; absent if not sent */
};

/** Limits for parsing. A zero member selects its default. */
struct duda_multipart_limits {
    uint64_t size;        /**< bytes of the whole body: 32 MB */
    uint64_t file;        /**< bytes of one file: 16 MB */
    uint64_t value;       /**< bytes of a part that is not a file: 64 KB */
    size_t parts;         /**< number of parts: 256 */
    size_t head;          /**< bytes of the headers of one part: 4 KB, at most DUDA_PART_HEAD_MAX */
    size_t name;          /**< bytes of a name, and of a file name: 256 */
    uint64_t reserved[4]; /**< must be zero */
};

/** Returns the limits with the defaults filled in. */
MK_API struct duda_multipart_limits duda_multipart_limits_of(const struct duda_multipart_limits *limits);

/** Upper bound for the `head` limit, in bytes. */
enum { DUDA_PART_HEAD_MAX = 16 * 1024 };

/** The parser's callbacks. Each returns 0, or a negative errno value, which stops the parser and becomes its
 * result. */
struct duda_multipart_ops {
    int (*part)(void *ctx, const struct duda_part *part); /**< a part starts */
    int (*data)(void *ctx, mk_str bytes);                 /**< the next bytes of the part */
    int (*end)(void *ctx);                                /**< the part is complete; may be NULL */
    uint64_t reserved[2];                                 /**< must be zero */
};

/** A multipart parser. */
struct duda_multipart;

/** Maximum length of a boundary (RFC 2046, section 5.1.1). */
enum { DUDA_BOUNDARY_MAX = 70 };

/** Extracts the boundary from a Content-Type. Returns false if the type is not multipart/form-data, or if the
 * boundary is missing or malformed. The result is a slice of `type`. */
MK_API bool duda_multipart_boundary(mk_str type, mk_str *out);

/**
 * Creates a parser; NULL if memory is exhausted. Free it with duda_multipart_free(). Thread-safe.
 *
 *     struct duda_multipart *m = duda_multipart_new(boundary, NULL, &ops, ctx);
 *     while (!e && (n = read_more(buf, sizeof buf)) > 0)
 *         e = duda_multipart_feed(m, mk_str_of(buf, n));
 *     if (!e)
 *         e = duda_multipart_end(m);
 *     duda_multipart_free(m);
 */
MK_API struct duda_multipart *duda_multipart_new(mk_str boundary, const struct duda_multipart_limits *limits,
                                                 const struct duda_multipart_ops *ops,
                                                 void *ctx) MK_API_MUST_USE;
/** Parses the next bytes. Returns 0; -EBADMSG: malformed (400); -EMSGSIZE: a limit is exceeded (413); or the
 * error of a callback. Errors are sticky. */
MK_API int duda_multipart_feed(struct duda_multipart *multipart, mk_str bytes) MK_API_MUST_USE;
/** Marks the end of the input. Returns 0, or -EBADMSG if the last part is incomplete. */
MK_API int duda_multipart_end(struct duda_multipart *multipart) MK_API_MUST_USE;
/** After an error: a description of the violated rule or limit, or NULL if a callback failed. *part is the
 * number of parts that had started. */
MK_API const char *duda_multipart_error(const struct duda_multipart *multipart, size_t *part);
/** For use in data(): the offset, within the body, of the bytes that data() received. */
MK_API uint64_t duda_multipart_offset(const struct duda_multipart *multipart);
/** Frees the parser; NULL is allowed. */
MK_API void duda_multipart_free(struct duda_multipart *multipart);

/**
 * Derives a safe file name from a client's file name: the last path component, up to 100 bytes. Letters,
 * digits, visible non-ASCII characters, `-`, `_` and single dots stay, except a leading dot. Everything else
 * becomes `_`: spaces, punctuation, invisible characters, characters that change the text direction, and
 * invalid UTF-8. The sequences %22, %0D and %0A, which browsers send for a quote, a CR and an LF, each count
 * as one character. The result is "file" if nothing is left. Different names may have the same result, so use
 * the result only for display, not to store files.
 */
MK_API void duda_file_name_clean(struct mk_buf *out, mk_str file_name);

#ifdef __cplusplus
}
#endif

#endif
