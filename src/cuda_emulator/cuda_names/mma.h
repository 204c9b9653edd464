// In CUDA, a header of this name declares the matrix products of a warp.
#pragma once
#include "cuda_emulator.h"
#include "emulated/wmma.h"
