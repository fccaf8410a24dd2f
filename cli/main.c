/* fathom: which command is meant. */
#include "command.h"
#include "faults.h"
#include "output.h"
#include "terminal.h"

#include <fathom.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
    {"ocr", "fathom ocr", command_ocr},
    {"chat", "fathom chat", command_chat},
    {"generate", "fathom generate", command_generate},
    {"inspect", "fathom inspect", command_inspect},
    {"bench", "fathom bench", command_bench},
    {"help", "fathom help", command_help},
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static bool is(const char *arg, const char *long_name, const char *short_name)
{
    return strcmp(arg, long_name) == 0 || strcmp(arg, short_name) == 0;
}

/* The least number of letters to add, take away or replace that make b of a; no more than MAX_LETTERS of each count. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX_LETTERS = 16 };
    size_t n = strnlen(b, MAX_LETTERS), row[MAX_LETTERS + 1];
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; i < MAX_LETTERS && a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t replaced = diagonal + (a[i] != b[j]), changed = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < changed ? replaced : changed;
        }
    }
    return row[n];
}

/* The command that a word which names no file was perhaps meant to be; NULL if it looks like none. */
static const char *command_meant(const char *word)
{
    if (strlen(word) < 3 || access(word, F_OK) == 0)
        return NULL;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (distance(word, commands[i].name) <= 2 && word[0] == commands[i].name[0])
            return commands[i].name;
    return NULL;
}

int main(int argc, char **argv)
{
    faults_setup();
    output_setup();
    if (argc < 2) {
        print_error("no FILE to read; fathom help shows how");
        return EXIT_USAGE;
    }
    if (is(argv[1], "--version", "-V")) {
        printf("fathom %s\n", fathom_version());
        return EXIT_DONE;
    }
    const struct command *command =
        command_find(is(argv[1], "--help", "-h") || is(argv[1], "-?", "-?") ? "help" : argv[1]);
    if (command) {
        argv[1] = command->program;
        return command->run(argc - 1, argv + 1);
    }
    const char *meant = command_meant(argv[1]);
    if (meant) {
        print_error("'%s' is neither a file nor a command; did you mean 'fathom %s'?", argv[1], meant);
        return EXIT_USAGE;
    }
    argv[0] = command_find("ocr")->program;
    return command_ocr(argc, argv);
}
