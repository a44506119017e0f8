/* SPDX-License-Identifier: Apache-2.0 */
#include "compile_commands.h"

#include "cache.h"
#include "compile.h"
#include "options.h"

#include <errno.h>
#include <monkey/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_MAX = 64 * 1024 * 1024, MESSAGES_MAX = 64 * 1024 };

static bool append_command(struct mk_json_writer *out, const struct dev_compile *how,
                           const struct dev_source *source, mk_str folder, mk_str file,
                           struct mk_buf *messages)
{
    struct dev_argv words;
    dev_argv_init(&words);
    bool ok = dev_compile_build_command(how, source, file, &words, messages);
    mk_json_begin_object(out);
    mk_json_string(mk_json_key(out, "directory"), folder);
    mk_json_string(mk_json_key(out, "file"), file);
    mk_json_begin_array(mk_json_key(out, "arguments"));
    mk_str rest = mk_buf_str(&words.text);
    for (size_t i = 0; i < words.n; i++)
        mk_json_string(out, mk_str_cut(&rest, '\0'));
    mk_json_end_array(out);
    mk_json_end_object(out);
    mk_buf_add(out->out, MK_STR("\n"));
    dev_argv_free(&words);
    return ok;
}

static bool append_list(struct mk_json_writer *out, const struct dev_compile *how,
                        const struct dev_source *source, mk_str folder, mk_str files, struct mk_buf *messages)
{
    bool ok = true;
    while (files.len)
        ok = append_command(out, how, source, folder, mk_str_cut(&files, '\n'), messages) && ok;
    return ok;
}

/* Finds the folder of the service: the one on the command line, or that of the main source. */
static bool find_folder(const struct dev_source *source, const struct dev_service_words *words,
                        char folder[PATH_MAX])
{
    struct stat st;
    if (words->n == 1 && stat(words->at[0], &st) == 0 && S_ISDIR(st.st_mode))
        return realpath(words->at[0], folder) != NULL;
    size_t slash = mk_str_find_last(mk_str_from_c(source->path), '/');
    return dev_paths_format(folder, "%.*s", (int)(slash ? slash : 1), source->path);
}

int dev_compile_commands_write(const struct dev_paths *paths, const struct dev_source *source,
                               const struct dev_service_words *words, char written[PATH_MAX])
{
    const struct dev_compile how = {.paths = paths, .kind = DEV_COMPILE_QUICK};
    char folder[PATH_MAX], path[PATH_MAX];
    if (!find_folder(source, words, folder) || !dev_paths_format(path, "%s/compile_commands.json", folder))
        return dev_print_error(DEV_EXIT_FAILED, "build", source->path, "the path of its folder is too long");
    struct mk_buf out = mk_buf_growing(TEXT_MAX), messages = mk_buf_growing(MESSAGES_MAX);
    struct dev_folder_scan scan;
    mk_str at = mk_str_from_c(folder);
    dev_folder_scan_begin(&scan, folder);
    struct mk_json_writer json = mk_json_writer_to(&out);
    mk_json_begin_array(&json);
    bool ok = append_command(&json, &how, source, at, mk_str_from_c(source->path), &messages);
    ok = append_list(&json, &how, source, at, mk_buf_str(&source->others), &messages) && ok;
    ok = append_list(&json, &how, source, at, mk_buf_str(&scan.tests), &messages) && ok;
    mk_json_end_array(&json);
    mk_buf_add(&out, MK_STR("\n"));
    dev_print_text(stderr, mk_buf_str(&messages));
    errno = 0;
    if (ok && !dev_cache_write_file(path, mk_buf_str(&out)))
        ok = dev_print_error(false, "build", path, strerror(errno));
    if (written)
        memcpy(written, path, sizeof path);
    dev_folder_scan_free(&scan);
    mk_buf_free(&out);
    mk_buf_free(&messages);
    return ok ? DEV_EXIT_OK : DEV_EXIT_FAILED;
}
