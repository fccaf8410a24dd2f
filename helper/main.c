/* fathom-helper: decodes the pictures and documents of strangers for libfathom, in a sandbox. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "document/protocol.h"
#include "helper/pdf.h"
#include "helper/sandbox.h"
#include "helper/self_test.h"
#include "helper/serve.h"

static int usage(FILE *to, int status)
{
    fputs("Usage: fathom-helper --self-test | --version\n"
          "libfathom starts this program to decode pictures and documents in a sandbox.\n"
          "--self-test tries what the sandbox must refuse, and fails when anything works.\n",
          to);
    return status;
}

/* In the sandbox, what goes wrong with the sandbox can still be told. */
static int serve_sandboxed(void)
{
    struct fathom_err err;
    pdf_prepare();
    sandbox_watch(PROTOCOL_FD);
    if (sandbox_enter(&err)) {
        struct request request;
        struct reply reply = {.version = PROTOCOL_VERSION, .status = err.status};
        int fd;
        memcpy(reply.message, err.message, sizeof reply.message);
        if (protocol_receive(PROTOCOL_FD, &request, sizeof request, &fd, INFINITY) == RECEIVED)
            protocol_send(PROTOCOL_FD, &reply, sizeof reply, -1);
        return 1;
    }
    serve(PROTOCOL_FD);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        _exit(serve_sandboxed()); /* the libraries' own last deeds would only ask for what they may not do */
    if (argc == 2 && strcmp(argv[1], "--self-test") == 0)
        return self_test();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("fathom-helper %s\n", fathom_version());
        return 0;
    }
    return argc == 2 && strcmp(argv[1], "--help") == 0 ? usage(stdout, 0) : usage(stderr, 2);
}
