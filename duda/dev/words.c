/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <monkey/str.h>

void dev_words_init(struct dev_words *w)
{
    *w = (struct dev_words){.text = mk_buf_growing(DEV_WORDS_TEXT)};
}

void dev_words_free(struct dev_words *w)
{
    mk_buf_free(&w->text);
}

void dev_words_add(struct dev_words *w, mk_str word)
{
    mk_buf_add(&w->text, word);
    mk_buf_add_char(&w->text, '\0');
    w->n++;
}

void dev_words_addf(struct dev_words *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&w->text, fmt, args);
    va_end(args);
    mk_buf_add_char(&w->text, '\0');
    w->n++;
}

mk_str dev_words_cut(mk_str *text)
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

void dev_words_split(struct dev_words *w, mk_str text)
{
    mk_str word;
    while ((word = dev_words_cut(&text)).len)
        dev_words_add(w, word);
}

bool dev_words_argv(struct dev_words *w, char *argv[DEV_WORDS_MAX + 1])
{
    if (w->text.failed || w->n > DEV_WORDS_MAX)
        return false;
    char *at = w->text.p;
    for (size_t i = 0; i < w->n; i++) {
        argv[i] = at;
        at += strlen(at) + 1;
    }
    argv[w->n] = NULL;
    return true;
}
