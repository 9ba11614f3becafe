// The EAL.
-f common.f
fragmenter/hotline_eal_pkg.sv
fragmenter/hotline_feistel.sv
fragmenter/hotline_eal_bank.sv
fragmenter/hotline_eal.sv
