/* SPDX-License-Identifier: Apache-2.0 */
/* multipart/form-data (RFC 7578), piece by piece: how forms send files. */
#ifndef DUDA_MULTIPART_H
#define DUDA_MULTIPART_H

#include <duda/allocator.h>
#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the head of a part says. The texts are valid during the call that gets them; no NUL follows. */
struct duda_part {
    mk_str name;
    /** As the client has written it, in `filename` or `filename*`: never a path, never trusted. Absent: the part is
     * no file. */
    mk_str file_name;
    mk_str type; /**< absent if the part does not say */
};

/** What the content may cost. A member that is 0 means its default. */
struct duda_multipart_limits {
    uint64_t size;  /**< bytes of all: 32 MB */
    uint64_t file;  /**< bytes of one file: 16 MB */
    uint64_t value; /**< bytes of a part that is no file: 64 KB */
    size_t parts;   /**< their number: 256 */
    size_t head;    /**< bytes of the head of one part: 4 KB, at most DUDA_PART_HEAD_MAX */
    size_t name;    /**< bytes of a name, and of a file name: 256 */
};

/** The limits with the defaults filled in. */
MK_API struct duda_multipart_limits duda_multipart_limits_of(const struct duda_multipart_limits *limits);

/** The largest head of a part that can be allowed. */
enum { DUDA_PART_HEAD_MAX = 16 * 1024 };

/** What happens to the parts. Each answers 0, or a negated errno value, which ends the reading and is its
 * answer. */
struct duda_multipart_ops {
    int (*part)(void *ctx, const struct duda_part *part); /**< a part begins */
    int (*data)(void *ctx, mk_str bytes);                 /**< more of it */
    int (*end)(void *ctx);                                /**< it has ended; NULL: that does not matter */
};

/** A reader of such content. */
struct duda_multipart;

/** The most characters of a boundary (RFC 2046, section 5.1.1). */
enum { DUDA_BOUNDARY_MAX = 70 };

/** The boundary that a Content-Type says: false if it is not multipart/form-data, or the boundary is missing
 * or malformed. It is a slice of `type`. */
MK_API bool duda_multipart_boundary(mk_str type, mk_str *out);

/**
 * Begins to read. NULL: no memory. Ends with duda_multipart_free(). From any thread.
 *
 *     struct duda_multipart *m = duda_multipart_new(boundary, NULL, &ops, ctx);
 *     while (!e && (n = read_more(room, sizeof room)) > 0)
 *         e = duda_multipart_feed(m, mk_str_of(room, n));
 *     if (!e)
 *         e = duda_multipart_end(m);
 *     duda_multipart_free(m);
 */
MK_API struct duda_multipart *duda_multipart_new(mk_str boundary, const struct duda_multipart_limits *limits,
                                                 const struct duda_multipart_ops *ops,
                                                 void *ctx) MK_API_MUST_USE;
/** The next bytes. 0; -EBADMSG: malformed (400); -EFBIG: a limit is exceeded (413); or what the ops have
 * answered. An error stays. */
MK_API int duda_multipart_feed(struct duda_multipart *m, mk_str bytes) MK_API_MUST_USE;
/** There are no more bytes. 0, or -EBADMSG: the last part has no end. */
MK_API int duda_multipart_end(struct duda_multipart *m) MK_API_MUST_USE;
/** Behind an error: which rule or limit it is about, in words; NULL: it came from the ops. *part: how many parts
 * had begun. */
MK_API const char *duda_multipart_why(const struct duda_multipart *m, size_t *part);
/** In data(): where its bytes are in the content. */
MK_API uint64_t duda_multipart_at(const struct duda_multipart *m);
/** NULL is fine. */
MK_API void duda_multipart_free(struct duda_multipart *m);

/**
 * A name that a file may have, made of what a client has called it: its last part, letters and other
 * characters beyond ASCII, digits, `-`, `_` and single dots of it, up to 100 bytes, no dot in front; all else
 * becomes `_`: blanks, punctuation, characters that are not seen or change the direction of others, and what is
 * not UTF-8. What browsers write as %22, %0D and %0A is one character. "file" when nothing is left.
 * Names of different files may become the same, so do not store files under it: keep it to show it.
 */
MK_API void duda_file_name_clean(struct mk_buf *out, mk_str file_name);

#ifdef __cplusplus
}
#endif

#endif
