// In CUDA, a header of this name declares a part of cuda_emulator.h.
#pragma once
#include "cuda_emulator.h"
