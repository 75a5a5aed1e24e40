#include "textflag.h"

// func terms8(panels int, k *float64, step, dims int, x, out *float64) float64
TEXT ·terms8(SB), NOSPLIT, $0-56
	MOVQ panels+0(FP), CX
	MOVQ k+8(FP), SI
	MOVQ step+16(FP), R8
	MOVQ dims+24(FP), R9
	MOVQ x+32(FP), DI
	MOVQ out+40(FP), DX

	MOVQ        $0xFFF0000000000000, AX // -Inf
	MOVQ        AX, X6
	VMOVDDUP    X6, X6
	VINSERTF128 $1, X6, Y6, Y6
	VMOVAPD     Y6, Y7

panel:
	VMOVUPD (SI), Y0
	VMOVUPD 32(SI), Y1
	LEAQ    (SI)(R8*1), R10 // means
	XORQ    BX, BX

dim:
	VBROADCASTSD (DI)(BX*8), Y2
	VSUBPD       (R10), Y2, Y3
	VSUBPD       32(R10), Y2, Y4
	VMULPD       (R10)(R8*1), Y3, Y3
	VMULPD       32(R10)(R8*1), Y4, Y4
	VMULPD       Y3, Y3, Y3
	VMULPD       Y4, Y4, Y4
	VSUBPD       Y3, Y0, Y0
	VSUBPD       Y4, Y1, Y1
	LEAQ         (R10)(R8*2), R10
	INCQ         BX
	CMPQ         BX, R9
	JLT          dim

	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMAXPD  Y0, Y6, Y6
	VMAXPD  Y1, Y7, Y7
	ADDQ    $64, SI
	ADDQ    $64, DX
	DECQ    CX
	JNZ     panel

	VMAXPD       Y7, Y6, Y6
	VEXTRACTF128 $1, Y6, X7
	VMAXPD       X7, X6, X6
	VPERMILPD    $1, X6, X7
	VMAXSD       X7, X6, X6
	VMOVSD       X6, ret+48(FP)
	VZEROUPPER
	RET
