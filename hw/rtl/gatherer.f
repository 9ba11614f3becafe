// The gatherer core.
-f common.f
gatherer/hotline_row_requester.sv
gatherer/hotline_row_mover.sv
gatherer/hotline_gatherer.sv
