/* SPDX-License-Identifier: Apache-2.0 */
/* Two workers, which are threads of one process, write to the logs of one configuration. Built with
 * ThreadSanitizer, which fails the program if they share mutable data. */
#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "logs/errorlog.h"
#include "unit/folder.h"

enum { LINES = 2000, LOGS = 3, WORKERS = 2 };

static const char *const names[LOGS] = {"error.log", "access.log", "/dev/full"};
static struct mk_logfile logs[LOGS];

/* The logs of a worker. */
struct worker {
    char name;
    struct mk_errorlog errors;
    struct mk_logwriter writers[LOGS];
    size_t n_full; /* number of times that the access log was full */
    pthread_t thread;
};

static void write_line(struct mk_logwriter *w, char name, int i)
{
    struct mk_buf *out = mk_logwriter_reserve(w, MK_LOG_INFO, 64);
    MK_ASSERT(out);
    mk_buf_addf(out, "%c %06d\n", name, i);
    (void)mk_logwriter_commit(w);
}

static void *serve(void *ctx)
{
    struct worker *w = ctx;
    for (size_t i = 0; i < LOGS; i++)
        mk_logwriter_init(&w->writers[i], &logs[i]);
    MK_ASSERT(mk_errorlog_set_writer(&w->errors.log, &w->writers[0]) == 0);
    for (int i = 0; i < LINES; i++) {
        write_line(&w->writers[1], w->name, i);
        write_line(&w->writers[2], w->name, i);
        if (i % 10 == 0)
            mk_log_error(&w->errors.log, "%c %06d", w->name, i);
        w->writers[1].rotation_requested_ms = w->n_full += mk_logfile_is_full(&logs[1]);
    }
    for (size_t i = 0; i < LOGS; i++)
        mk_logwriter_fini(&w->writers[i]);
    MK_ASSERT(w->writers[0].lost == 0 && w->writers[1].lost == 0 && w->writers[2].lost == LINES);
    return NULL;
}

/* Returns the number of the worker's lines in the text; the lines must be in order. */
static int count(mk_str text, char name, int step)
{
    char line[16];
    int n = 0;
    for (snprintf(line, sizeof line, "%c %06d", name, n); text.len;) {
        if (!mk_str_ends(mk_str_cut(&text, '\n'), mk_str_from_c(line)))
            continue;
        n++;
        snprintf(line, sizeof line, "%c %06d", name, n * step);
    }
    return n;
}

static void check(const char *path, int expected, int step)
{
    struct mk_buf text = mk_buf_growing(1 << 20);
    MK_ASSERT(mk_file_read_all(path, &text) == 0);
    for (int i = 0; i < WORKERS; i++)
        MK_ASSERT(count(mk_buf_str(&text), (char)('a' + i), step) == expected);
    mk_buf_free(&text);
}

int main(void)
{
    struct folder folder;
    char paths[LOGS][PATH_MAX];
    static struct worker workers[WORKERS];
    folder_init(&folder);
    for (unsigned i = 0; i < LOGS; i++) {
        const char *path = names[i][0] == '/' ? names[i] : folder_path(&folder, names[i], paths[i]);
        MK_ASSERT(mk_logfile_open(&logs[i], mk_str_from_c(path), NULL) == 0);
        logs[i].index = i;
        logs[i].max_size = 1000;
    }
    for (int i = 0; i < WORKERS; i++) {
        workers[i].name = (char)('a' + i);
        MK_ASSERT(mk_errorlog_init(&workers[i].errors, MK_LOG_INFO, &logs[0]) == 0);
        MK_ASSERT(pthread_create(&workers[i].thread, NULL, serve, &workers[i]) == 0);
    }
    for (int i = 0; i < WORKERS; i++)
        MK_ASSERT(pthread_join(workers[i].thread, NULL) == 0 && workers[i].n_full > 0);
    check(paths[0], LINES / 10, 10);
    check(paths[1], LINES, 1);
    for (int i = 0; i < LOGS; i++)
        mk_logfile_close(&logs[i]);
    folder_fini(&folder);
    return 0;
}
