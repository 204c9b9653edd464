#pragma once

#include "tensor/matrix.h"

namespace stagecraft {

float inner(MatrixView<const float> x);
float outer(MatrixView<const float> x);
void unused();
void throws();
void crashes();

}  // namespace stagecraft
