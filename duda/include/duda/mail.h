/* SPDX-License-Identifier: Apache-2.0 */
/* Composes mail messages that are safe against header injection. */
#ifndef DUDA_MAIL_H
#define DUDA_MAIL_H

#include <monkey/buf.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions are in monkey-duda-small.so: link with it (`pkg-config --libs duda-small`). They are
 * thread-safe. */

/** Limits: number of recipients; bytes of an address and of a subject. */
enum { DUDA_MAIL_RECIPIENTS_MAX = 100, DUDA_MAIL_ADDRESS_MAX = 254, DUDA_MAIL_SUBJECT_MAX = 500 };

/** A message. Strings are UTF-8. */
struct duda_mail {
    mk_str from;      /**< an address: "shop@example.org" */
    const mk_str *to; /**< n_to addresses */
    size_t n_to;
    mk_str reply_to; /**< an address, or absent */
    mk_str subject;
    mk_str body;
    mk_str content_type; /**< absent: "text/plain" */
};

/**
 * Writes a message with its header (RFC 5322, MIME), for `sendmail -t -i` or an SMTP client; `now` is in
 * seconds since 1970. Returns 0; -EINVAL: an address is invalid, there is no recipient, or the subject or
 * type contains control characters, which could inject a header; -EMSGSIZE: too many recipients, or the
 * message is too long; -ENOMEM: `out` is full.
 *
 *     const struct duda_mail mail = {.from = MK_STR("shop@example.org"), .to = &address, .n_to = 1,
 *                                    .subject = MK_STR("Your order"), .body = text};
 *     int e = duda_mail_write(&out, &mail, mk_worker_now(duda_worker(d)));
 */
MK_API int duda_mail_write_sized(struct mk_buf *out, const struct duda_mail *mail, size_t mail_size,
                                 int64_t now);
static inline int duda_mail_write(struct mk_buf *out, const struct duda_mail *mail, int64_t now)
{
    return duda_mail_write_sized(out, mail, sizeof *mail, now);
}
/**
 * Is the text an address that duda_mail_write() accepts: local@domain, ASCII, without quotes?
 *
 *     if (!duda_mail_is_address(duda_form(d, "address")))
 *         return duda_problem(d, 422, "`address` is not an email address");
 */
MK_API bool duda_mail_is_address(mk_str text);

#ifdef __cplusplus
}
#endif

#endif
