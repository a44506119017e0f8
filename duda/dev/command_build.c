/* SPDX-License-Identifier: Apache-2.0 */
#include "command_build.h"

#include "compile.h"
#include "compile_commands.h"
#include "options.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOURCES_MAX = 100 };

static const char usage[] = "usage: monkey build [-o FILE] [--compile-commands] SOURCE.c...|FOLDER\n";
static const char help[] =
    "Compiles a Duda service with optimization into a shared object that the server loads.\n"
    "\n"
    "  -o, --output FILE       output file; default: monkey-NAME.so in the current folder\n"
    "  -c, --compile-commands  write compile_commands.json for editors into the folder of the service, and "
    "do\n"
    "                          not build\n"
    "  -h, --help              print this help\n"
    "\n"
    "All files of a FOLDER and its subfolders belong to the service, except tests (NAME_test.c). A comment "
    "in\n"
    "a source may hold `sources: FILE.c...`, `pkg-config: NAME...` and `cflags: FLAG...`. The environment\n"
    "variables CC and CXX set the compilers.\n";

static void print_load_hint(const char *object, const char *name)
{
    printf("Built %s. To serve it on all hosts, add to the configuration:\n\n[PLUGINS]\n    Load  %s%s\n\n",
           object, strchr(object, '/') ? "" : "./", object);
    printf(
        "To serve it only on one host, below a path, also add after the section of that host:\n\n[ROUTES]\n"
        "    /%s/*  %s\n",
        name, name);
}

/* Checks the output file before the compiler runs, because the compiler would report the error for a
 * temporary file. */
static bool can_write_output(const char *output)
{
    char folder[PATH_MAX];
    mk_str path = mk_str_from_c(output);
    size_t slash = mk_str_find_last(path, '/');
    if (slash == MK_STR_NONE)
        return access(".", W_OK) == 0;
    return dev_paths_format(folder, "%.*s", MK_STR_ARG(mk_str_first(path, slash ? slash : 1))) &&
           access(folder, W_OK) == 0;
}

/* Loads the object, because undefined symbols would otherwise only be noticed when the server loads it.
 * Ignores any other failure, which may only mean that the compiler targets another machine. */
static bool has_no_undefined_symbols(const char *object)
{
    char path[PATH_MAX];
    void *handle = realpath(object, path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const char *error = handle ? NULL : dlerror();
    if (handle)
        dlclose(handle);
    if (!error || !strstr(error, "undefined symbol"))
        return true;
    (void)unlink(path);
    return dev_print_error(false, "build", NULL, error);
}

static int build_object(const struct dev_paths *paths, struct dev_source *source, const char *output)
{
    char path[PATH_MAX];
    struct dev_compile_result made;
    if (!output && dev_paths_format(path, "monkey-%s.so", source->name))
        output = path;
    const struct dev_compile how = {.paths = paths,
                                    .kind = DEV_COMPILE_DEPLOY,
                                    .color = isatty(STDERR_FILENO) == 1 && !getenv("NO_COLOR"),
                                    .output = output};
    if (!can_write_output(output))
        return dev_print_error(DEV_EXIT_FAILED, "build", output, strerror(errno));
    dev_compile(&how, source, &made);
    dev_print_text(stderr, mk_buf_str(&made.messages));
    bool ok = made.ok && has_no_undefined_symbols(output);
    if (ok)
        print_load_hint(output, source->name);
    int code = ok ? DEV_EXIT_OK : DEV_EXIT_FAILED;
    dev_compile_result_free(&made);
    return code;
}

static int run_build_command(int argc, char **argv)
{
    const char *output = NULL;
    bool only_commands = false;
    const struct dev_option options[] = {{'o', "output", &output, NULL},
                                         {'c', "compile-commands", NULL, &only_commands}};
    struct dev_options opts = {.usage = usage,
                               .help = help,
                               .options = options,
                               .n_options = MK_LEN(options),
                               .args_min = 1,
                               .args_max = SOURCES_MAX};
    struct dev_paths paths;
    struct dev_source source;
    char problem[DEV_PROBLEM_MAX], path[PATH_MAX];
    int code;
    if (!dev_options_parse(&opts, argc, argv, &code))
        return code;
    const struct dev_service_words words = {(const char *const *)opts.args, (size_t)opts.n_args};
    if (!dev_service_load(&source, &words, problem))
        return dev_print_error(DEV_EXIT_FAILED, "build", opts.args[0], problem);
    if (!dev_paths_find(&paths))
        code = DEV_EXIT_FAILED;
    else if (only_commands &&
             (code = dev_compile_commands_write(&paths, &source, &words, path)) == DEV_EXIT_OK)
        printf("Wrote %s\n", path);
    else if (!only_commands)
        code = build_object(&paths, &source, output);
    dev_source_free(&source);
    return code;
}

const struct mk_command dev_command_build = {
    .name = "build",
    .args = "SOURCE.c...|FOLDER",
    .help = "Compile a service into a shared object that the server can load.",
    .run = run_build_command,
};
