// Attack: an error message as long as an answer may be, with bytes that are not valid text.
// Ends as: wrong
#include <stdexcept>
#include <string>

#include "attack.h"

static void attack() {
  throw std::runtime_error(std::string(200'000, '\n') + "\xed\xa0\x80\xff\\ud800\x1b[2J");
}
