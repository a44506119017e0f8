/* SPDX-License-Identifier: Apache-2.0 */
/* Composes mail messages. This code validates addresses and encodes all other strings, so user input cannot
 * inject headers or recipients. */
#include <duda/mail.h>
#include <monkey/sized.h>

#include <errno.h>
#include <monkey/text.h>
#include <time.h>

enum { WORD_BYTES = 39, LINE_BYTES = 57, TYPE_MAX_LEN = 100, ID_BYTES = 12, PLAIN_MAX = 70 };

/* ---- Validation ---- */

static bool is_atom_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || (c && strchr("!#$%&'*+-/=?^_`{|}~.", c));
}

static bool is_domain(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && !mk_char_is_digit(s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
            return false;
    return s.len && s.p[0] != '-' && s.p[0] != '.' && s.p[s.len - 1] != '.';
}

bool duda_mail_is_address(mk_str text)
{
    size_t at = mk_str_find_last(text, '@');
    if (text.len > DUDA_MAIL_ADDRESS_MAX || at == MK_STR_NONE || at == 0 || text.p[0] == '-')
        return false;
    for (size_t i = 0; i < at; i++)
        if (!is_atom_char(text.p[i]))
            return false;
    return is_domain(mk_str_skip(text, at + 1));
}

static bool has_control_char(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return true;
    return false;
}

static int check_mail(const struct duda_mail *m)
{
    if (m->n_to > DUDA_MAIL_RECIPIENTS_MAX || m->subject.len > DUDA_MAIL_SUBJECT_MAX ||
        m->content_type.len > TYPE_MAX_LEN)
        return -EMSGSIZE;
    if (!m->n_to || has_control_char(m->subject) || has_control_char(m->content_type) ||
        !duda_mail_is_address(m->from) || (m->reply_to.p && !duda_mail_is_address(m->reply_to)))
        return -EINVAL;
    for (size_t i = 0; i < m->n_to; i++)
        if (!duda_mail_is_address(m->to[i]))
            return -EINVAL;
    return 0;
}

/* ---- Formatting ---- */

static bool is_plain_ascii(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return s.len <= PLAIN_MAX && !mk_str_starts(s, MK_STR("=?"));
}

/* Writes encoded words (RFC 2047), and splits no character between two of them. */
static void write_encoded_words(struct mk_buf *out, mk_str s)
{
    for (bool is_first = true; s.len; is_first = false) {
        size_t n = s.len < WORD_BYTES ? s.len : WORD_BYTES;
        while (n < s.len && n > 1 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
            n--;
        mk_buf_add(out, is_first ? MK_STR("=?utf-8?B?") : MK_STR("\n =?utf-8?B?"));
        mk_base64_encode(out, mk_str_first(s, n));
        mk_buf_add(out, MK_STR("?="));
        s = mk_str_skip(s, n);
    }
}

static void write_subject(struct mk_buf *out, mk_str s)
{
    mk_buf_add(out, MK_STR("Subject: "));
    if (is_plain_ascii(s))
        mk_buf_add(out, s);
    else
        write_encoded_words(out, s);
    mk_buf_add_char(out, '\n');
}

/* Formats a date as in RFC 5322, section 3.3, without strftime(), which would use the locale. */
static void write_date(struct mk_buf *out, int64_t now)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t seconds = (time_t)now;
    struct tm t;
    if (!gmtime_r(&seconds, &t))
        return;
    mk_buf_addf(out, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d +0000\n", days + 3 * t.tm_wday, t.tm_mday,
                months + 3 * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

static void write_address_headers(struct mk_buf *out, const struct duda_mail *m, int64_t now)
{
    char bits[ID_BYTES];
    mk_random(bits, sizeof bits);
    mk_buf_addf(out, "From: %.*s\n", MK_STR_ARG(m->from));
    if (m->reply_to.p)
        mk_buf_addf(out, "Reply-To: %.*s\n", MK_STR_ARG(m->reply_to));
    write_date(out, now);
    mk_buf_add(out, MK_STR("Message-ID: <"));
    mk_hex_encode(out, mk_str_of(bits, sizeof bits));
    mk_buf_addf(out, "%.*s>\n", MK_STR_ARG(mk_str_skip(m->from, mk_str_find_last(m->from, '@'))));
}

static void write_base64_body(struct mk_buf *out, mk_str text)
{
    for (; text.len; text = mk_str_skip(text, LINE_BYTES)) {
        mk_base64_encode(out, mk_str_first(text, LINE_BYTES));
        mk_buf_add_char(out, '\n');
    }
}

int duda_mail_write_sized(struct mk_buf *out, const struct duda_mail *m, size_t m_size, int64_t now)
{
    struct duda_mail full;
    m = mk_sized_in(&full, sizeof full, m, m_size);
    mk_str type = m->content_type.p ? m->content_type : MK_STR("text/plain");
    int e = check_mail(m);
    if (e)
        return e;
    write_address_headers(out, m, now);
    for (size_t i = 0; i < m->n_to; i++)
        mk_buf_addf(out, "%s%.*s%s", i ? " " : "To: ", MK_STR_ARG(m->to[i]), i + 1 < m->n_to ? ",\n" : "\n");
    write_subject(out, m->subject);
    mk_buf_addf(out, "MIME-Version: 1.0\nContent-Type: %.*s; charset=utf-8\n", MK_STR_ARG(type));
    mk_buf_add(out, MK_STR("Content-Transfer-Encoding: base64\n\n"));
    write_base64_body(out, m->body);
    return out->failed ? -ENOMEM : 0;
}
