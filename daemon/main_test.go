package daemon_test

import (
	"fmt"
	"os"
	"testing"

	"noted/daemon"
)

func TestMain(m *testing.M) {
	daemon.Child()
	if home := os.Getenv(victimVariable); home != "" {
		beVictim(home)
	}
	if home := os.Getenv(betrayedVariable); home != "" {
		beBetrayed(home)
	}
	if home := os.Getenv(survivorVariable); home != "" {
		beSurvivor(home)
	}
	if home := os.Getenv(spenderVariable); home != "" {
		beSpender(home)
	}
	if home := os.Getenv(idlerVariable); home != "" {
		if err := beIdle(home); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if home := os.Getenv(toucherVariable); home != "" {
		if err := beToucher(home, os.Getenv(folderVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
