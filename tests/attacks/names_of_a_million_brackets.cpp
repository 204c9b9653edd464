// Attack: a symbol whose name is a million brackets, in a program that cannot be linked.
// Ends as: uncompiled
#include "attack.h"

#define TWICE(x) x x
#define SIXTEEN(x) TWICE(TWICE(TWICE(TWICE(x))))
#define MANY(x) SIXTEEN(SIXTEEN(SIXTEEN(SIXTEEN(x))))
#define MILLION(x) TWICE(TWICE(TWICE(TWICE(MANY(x)))))

asm(".globl \"_Z1" MILLION("<") MILLION(">") "\"\n\"_Z1" MILLION("<") MILLION(">") "\": .quad 0\n");

void nobody_has_this();
static void attack() { nobody_has_this(); }
