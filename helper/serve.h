#ifndef FATHOM_HELPER_SERVE_H
#define FATHOM_HELPER_SERVE_H

/* Answers requests until the other end of the socket closes. */
void serve(int sock);

#endif
