/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 160, AHEAD = 24 };

/* The compiler had the whole path. */
void tester_say_place(const char *file, int line)
{
    char here[PATH_MAX];
    size_t len = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (len > 1 && strncmp(file, here, len) == 0 && file[len] == '/')
        file += len + 1;
    printf("  %s:%d: ", file, line);
}

static void put_char(char c)
{
    static const char marks[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
    const char *mark = c ? strchr(marks, c) : NULL;
    if (mark)
        printf("\\%c", letters[mark - marks]);
    else if ((unsigned char)c < 0x20 || c == 0x7f)
        printf("\\x%02x", (unsigned char)c);
    else
        putchar(c);
}

/* As in a source of C, so that blanks and ends of lines can be seen. Letters beyond ASCII are not cut. */
static void put(mk_str text, size_t from)
{
    size_t i = from, end = from + SHOWN < text.len ? from + SHOWN : text.len;
    while (end < text.len && ((unsigned char)text.p[end] & 0xc0) == 0x80)
        end++;
    if (!text.p) {
        printf("nothing");
        return;
    }
    printf("%s\"", from ? "..." : "");
    while (i < end)
        put_char(text.p[i++]);
    printf("\"%s", end < text.len ? "..." : "");
}

/* Where the texts differ, or a bit ahead of that when the beginning is long. */
static size_t begin_of(mk_str a, mk_str b)
{
    size_t i = 0;
    while (i < a.len && i < b.len && a.p[i] == b.p[i])
        i++;
    if (i < SHOWN / 2)
        return 0;
    i -= AHEAD;
    while (i > 0 && ((unsigned char)a.p[i] & 0xc0) == 0x80)
        i--;
    return i;
}

void tester_say_difference(const char *what, mk_str got, mk_str wanted)
{
    size_t from = begin_of(got, wanted);
    printf("%s: expected ", what);
    put(wanted, from);
    printf(", got ");
    put(got, from);
    putchar('\n');
}

void tester_say_part(const char *what, mk_str got, mk_str part)
{
    printf("%s: expected ", what);
    put(part, 0);
    printf(" in it, got ");
    put(got, 0);
    putchar('\n');
}

void tester_say_content(mk_str content)
{
    if (content.len) {
        printf(" with ");
        put(content, 0);
    }
    putchar('\n');
}
