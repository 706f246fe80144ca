from scene import *
