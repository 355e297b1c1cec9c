"""Does a system last whose queries change every ten seconds and that is killed every five minutes?"""
