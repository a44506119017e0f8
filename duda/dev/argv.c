/* SPDX-License-Identifier: Apache-2.0 */
#include "argv.h"

#include <monkey/str.h>

void dev_argv_init(struct dev_argv *w)
{
    *w = (struct dev_argv){.text = mk_buf_growing(DEV_ARGV_TEXT_MAX)};
}

void dev_argv_free(struct dev_argv *w)
{
    mk_buf_free(&w->text);
}

void dev_argv_add(struct dev_argv *w, mk_str word)
{
    mk_buf_add(&w->text, word);
    mk_buf_add_char(&w->text, '\0');
    w->n++;
}

void dev_argv_addf(struct dev_argv *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&w->text, fmt, args);
    va_end(args);
    mk_buf_add_char(&w->text, '\0');
    w->n++;
}

mk_str dev_argv_next_word(mk_str *text)
{
    static const char blanks[] = " \t\r\n";
    size_t n = 0;
    while (text->len && strchr(blanks, text->p[0]))
        *text = mk_str_skip(*text, 1);
    while (n < text->len && !strchr(blanks, text->p[n]))
        n++;
    mk_str word = mk_str_first(*text, n);
    *text = mk_str_skip(*text, n);
    return word;
}

void dev_argv_add_split(struct dev_argv *w, mk_str text)
{
    mk_str word;
    while ((word = dev_argv_next_word(&text)).len)
        dev_argv_add(w, word);
}

bool dev_argv_to_array(struct dev_argv *w, char *argv[DEV_ARGV_MAX + 1])
{
    if (w->text.failed || w->n > DEV_ARGV_MAX)
        return false;
    char *at = w->text.p;
    for (size_t i = 0; i < w->n; i++) {
        argv[i] = at;
        at += strlen(at) + 1;
    }
    argv[w->n] = NULL;
    return true;
}
