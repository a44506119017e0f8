/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over each file in the given folders, and over each prefix of small files: a regression
 * test that needs no libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20, PREFIX_MAX = 512 };

/* A copy of the exact size, so that the sanitizer detects reads past the end. */
static void run_once(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(1);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int run_file(const char *path)
{
    static uint8_t data[INPUT_MAX];
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    run_once(data, size);
    for (size_t prefix = 0; size <= PREFIX_MAX && prefix < size; prefix++)
        run_once(data, prefix);
    return 1;
}

static int run_folder(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            n += run_file(path);
    }
    if (dir)
        closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++)
        n += run_folder(argv[i]);
    printf("%d inputs replayed\n", n);
    return n > 0 ? 0 : 1;
}
