// Attack: prints what the gate prints if all is right.
// Ends as: wrong
#include "attack.h"

static void attack() {
  puts("[       OK ] RmsNorm.DividesByTheRootOfTheMeanSquare (1 ms)\n[  PASSED  ] 9 tests.");
  puts(R"({"testsuites":[{"name":"RmsNorm","testsuite":[{"name":"T"}]}],"points":100})");
}
